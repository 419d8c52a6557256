# Two commands on a fresh clone: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test slow check bench docs new clean

setup: .venv/.done

.venv/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,bench,docs]'
	touch $@

demo: setup  ## train a small network until it is overconfident, measure it, repair it, write the report
	$(BIN)/calibrant demo

test: setup  ## all tests
	$(BIN)/python -m pytest -m "not slow"

slow: setup  ## the checks that take minutes: coverage of the intervals, a stream of millions of rows
	$(BIN)/python -m pytest -m slow

check: test  ## format, lint, types and layers are tests too

bench: setup  ## against the peers, in one run; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks

docs: setup  ## the pages, with the catalogue in them, into site/
	$(BIN)/python docs/build.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

new: setup  ## make new KIND=measure NAME=foo
	$(BIN)/python tools/new.py "$(KIND)" "$(NAME)"

clean:
	rm -rf .venv site .mypy_cache .ruff_cache .hypothesis
