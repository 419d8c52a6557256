"""`make new`: what it writes works as it is, and what it refuses is said clearly."""

import doctest
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
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


@pytest.fixture
def repairer(new, tmp_path):
    return new.make("calibrator", "mean_match", root=tmp_path)


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


def test_every_kind_says_how_to_try_it(new):
    assert set(new.TRY) == set(new.kinds())


def test_the_example_of_the_template_runs(made):
    cls = cal.measures.find(str(made))
    [example] = doctest.DocTestFinder(recurse=False).find(
        cls, cls.__name__, globs={"Predictions": cal.Predictions, cls.__name__: cls}
    )
    assert len(example.examples) == 2
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_template_is_a_working_calibrator(repairer, tmp_path):
    assert repairer == tmp_path / "src" / "calibrant" / "calibrators" / "mean_match.py"
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(2000, 4))
    p = cal.Predictions.from_logits(3 * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))  # three times too sure
    m = cal.fit(p, f"{repairer}:halvings=40")
    assert m.parameters["T"] == pytest.approx(3, abs=0.3)
    assert m.keeps_argmax
    q = m.apply(p)
    assert q.confidence.mean() == pytest.approx(p.correct.mean(), abs=1e-6)
    assert (q.predicted == p.predicted).all()
    assert type(cal.calibrators.make(str(repairer))).title == "Mean match"
    with pytest.raises(InputError, match="halvings: expected at least 1, got 0"):
        cal.calibrators.make(f"{repairer}:halvings=0")


def test_a_map_of_the_template_survives_the_disk(repairer, tmp_path, p):
    m = cal.fit(p, str(repairer))
    m.save(tmp_path / "map.json")
    assert (cal.load_map(tmp_path / "map.json").apply(p).probs == m.apply(p).probs).all()


def test_the_example_of_the_calibrator_runs(repairer):
    cls = cal.calibrators.find(str(repairer))
    [example] = doctest.DocTestFinder(recurse=False).find(
        cls, cls.__name__, globs={"Predictions": cal.Predictions, cls.__name__: cls}
    )
    assert len(example.examples) == 2
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("kind", ["measure", "calibrator"])
def test_every_template_follows_the_style(new, kind, tmp_path):
    pytest.importorskip("ruff")
    made = new.make(kind, "bold_claims", root=tmp_path)
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
        (["calibrator", "temperature"], "error: NAME: expected a name that is free"),
    ],
)
def test_mistakes_end_with_one_line(arguments, says):
    done = subprocess.run(
        [sys.executable, str(TOOL), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1


def test_the_template_of_a_loss_is_a_working_loss(new, tmp_path):
    import torch

    file = new.make("loss", "bold_loss", root=tmp_path)
    assert file == tmp_path / "src" / "calibrant" / "losses" / "bold_loss.py"
    loss = cal.losses.make(f"{file}:alpha=1")
    surprise = -np.log(0.25)
    found = float(loss(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([0])))
    assert found == pytest.approx(surprise + surprise**2)
    with pytest.raises(InputError, match="expected 0 or more"):
        cal.losses.make(f"{file}:alpha=-1")
