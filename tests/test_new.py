"""`make new`: what it writes works as it is, and what it refuses is said clearly."""

import doctest
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.core.errors import InputError

TOOL = Path(__file__).parents[1] / "tools" / "new.py"


@pytest.fixture(scope="module")
def new():
    spec = importlib.util.spec_from_file_location("new", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def made(new, tmp_path):
    return new.make("measure", "bold_claims", root=tmp_path)


def test_only_the_file_is_written(made, tmp_path):
    assert made == tmp_path / "src" / "calibrant" / "measures" / "bold_claims.py"
    assert [f for f in tmp_path.rglob("*") if f.is_file()] == [made]
    assert "class BoldClaims(RowMeasure)" in made.read_text()
    assert "$" not in made.read_text()


def test_the_template_is_a_working_measure(made, p):
    m = cal.measures.make(f"{made}:form=squared")
    assert type(m).title == "Bold claims"
    assert m(p) == pytest.approx(((p.confidence - p.correct) ** 2).mean())
    measured = cal.measure(p, m, resamples=50)
    assert measured.low <= measured.value <= measured.high
    assert measured.definition == "mean of the squared distance between confidence and correctness"
    with pytest.raises(InputError, match="expected one of absolute, squared, got 'cubed'"):
        cal.measures.make(f"{made}:form=cubed")


def test_the_example_of_the_template_runs(made):
    cls = cal.measures.find(str(made))
    [example] = doctest.DocTestFinder(recurse=False).find(
        cls, cls.__name__, globs={"Predictions": cal.Predictions, cls.__name__: cls}
    )
    assert len(example.examples) == 2
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_template_follows_the_style(made):
    pytest.importorskip("ruff")
    for command in (["format", "--check"], ["check"]):
        config = TOOL.parents[1] / "pyproject.toml"
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "--config", str(config), str(made)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name", ["", "Foo", "_foo", "foo-bar", "2nd", "../foo", "foo.py", "lambda", "größe", "foo bar"]
)
def test_a_bad_name_is_refused(new, tmp_path, name):
    with pytest.raises(InputError, match="NAME: expected a Python name") as refused:
        new.make("measure", name, root=tmp_path)
    assert f"'{name}'" in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_kind_is_refused_with_the_known_ones(new, tmp_path):
    with pytest.raises(InputError, match=r"KIND: expected .*measure.* got 'mesure'"):
        new.make("mesure", "foo", root=tmp_path)


def test_a_file_that_exists_is_kept(new, made, tmp_path):
    made.write_text("mine")
    with pytest.raises(InputError, match="a name that is free, got 'bold_claims'"):
        new.make("measure", "bold_claims", root=tmp_path)
    assert made.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "error: KIND: expected one of"),
        (["", ""], "error: KIND: expected one of"),
        (["measure", ""], "error: NAME: expected a Python name"),
        (["measure", "ece"], "error: NAME: expected a name that is free"),
    ],
)
def test_mistakes_end_with_one_line(arguments, says):
    done = subprocess.run(
        [sys.executable, str(TOOL), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1
