"""`make new`: what it writes works as it is, and what it refuses is said clearly."""

import doctest
import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError

ROOT = Path(__file__).parents[1]
TOOL = ROOT / "tools" / "new.py"
NEW = {"measure": "bold_claims", "calibrator": "mean_match", "loss": "bold_loss"}


@pytest.fixture(scope="module")
def new():
    spec = importlib.util.spec_from_file_location("new", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def measure_file(new, tmp_path):
    return new.make("measure", "bold_claims", root=tmp_path)


@pytest.fixture
def repairer(new, tmp_path):
    return new.make("calibrator", "mean_match", root=tmp_path)


def test_only_the_file_is_written(measure_file, tmp_path):
    assert measure_file == tmp_path / "src" / "calibrant" / "measures" / "bold_claims.py"
    assert [f for f in tmp_path.rglob("*") if f.is_file()] == [measure_file]
    assert "class BoldClaims(RowMeasure)" in measure_file.read_text()
    assert "$" not in measure_file.read_text()


def test_the_template_is_a_working_measure(measure_file, p):
    m = cal.measures.make(f"{measure_file}:form=squared")
    assert type(m).title == "Bold claims"
    assert m(p) == pytest.approx(((p.confidence - p.correct) ** 2).mean())
    measured = cal.measure(p, m, resamples=50)
    assert measured.low <= measured.value <= measured.high
    assert measured.definition == "mean of the squared distance between confidence and correctness"
    with pytest.raises(InputError, match="expected one of absolute, squared, got 'cubed'"):
        cal.measures.make(f"{measure_file}:form=cubed")


def test_every_kind_says_how_to_try_it(new):
    assert set(new.TRY) == set(new.kinds()) == set(NEW)
    for file in re.findall(r"src/\S+", " ".join(new.TRY.values())):
        assert (ROOT / file).exists()


@pytest.mark.parametrize("kind", NEW)
def test_the_example_of_the_template_runs(new, kind, tmp_path):
    names = {"Predictions": cal.Predictions}
    if kind == "loss":
        names["torch"] = pytest.importorskip("torch")
    room = {"measure": "measures", "calibrator": "calibrators", "loss": "losses"}[kind]
    cls = getattr(cal, room).find(str(new.make(kind, NEW[kind], root=tmp_path)))
    finder = doctest.DocTestFinder(recurse=False)
    [example] = finder.find(cls, cls.__name__, globs={**names, cls.__name__: cls})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.fixture
def with_new(new, tmp_path):
    """A package as the real one, but for a file of each kind from `make new` and another data set."""
    package, real = tmp_path / "src" / "calibrant", ROOT / "src" / "calibrant"
    package.mkdir(parents=True)
    for entry in real.iterdir():
        if entry.name in ("measures", "calibrators", "losses", "datasets"):
            (package / entry.name).mkdir()
            for file in entry.glob("*.py"):
                (package / entry.name / file.name).symlink_to(file)
        else:
            (package / entry.name).symlink_to(entry)
    for kind, name in NEW.items():
        new.make(kind, name, root=tmp_path)
    text = (real / "datasets" / "svhn.py").read_text().replace("SVHN", "BoldDigits").replace("Street view", "Bold")
    (package / "datasets" / "bold_digits.py").write_text(text)
    return package


@pytest.mark.long
def test_a_new_file_of_each_kind_keeps_every_promise_and_no_other_file_is_touched(with_new):
    """All contracts find the new files, and they pass; those of slow twins do not ask for one."""
    pytest.importorskip("torch")
    tests = ["tests/contracts", "tests/measures/test_against_slow.py", "tests/losses/test_loss_against_slow.py"]
    asked = " or ".join((*NEW.values(), "bold_digits", "unique", "twin", "are_there", "is_there"))
    path = os.pathsep.join((str(with_new.parent), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *tests, "-k", asked, "-vv", "-p", "no:randomly", "-p", "no:xdist"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    for name in NEW.values():
        assert done.stdout.count(f"[{name}") > 15, name
    assert done.stdout.count("[bold_digits") >= 5
    weighted = [line for line in done.stdout.splitlines() if "[mean_match" in line and "weight" in line]
    assert weighted, "no contract has tried the weights of the new calibrator"


def test_a_new_file_changes_nothing_on_the_page_of_the_structure(with_new):
    tree = runpy.run_path(str(ROOT / "docs" / "tree.py"))["tree"]
    before = tree()
    tree.__globals__["PACKAGE"] = with_new
    assert tree() == before


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


@pytest.mark.parametrize("kind", NEW)
def test_every_template_follows_the_style(new, kind, tmp_path):
    pytest.importorskip("ruff")
    file = new.make(kind, "bold_claims", root=tmp_path)
    for command in (["format", "--check"], ["check"]):
        config = ROOT / "pyproject.toml"
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "--config", str(config), str(file)],
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


def test_a_file_that_exists_is_kept(new, measure_file, tmp_path):
    measure_file.write_text("mine")
    with pytest.raises(InputError, match="a name that is free, got 'bold_claims'"):
        new.make("measure", "bold_claims", root=tmp_path)
    assert measure_file.read_text() == "mine"


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
def test_mistakes_end_with_one_line(new, arguments, says, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["new.py", *arguments])
    with pytest.raises(SystemExit) as end:
        new.main()
    message = capsys.readouterr().err
    assert end.value.code == 2
    assert message.startswith(says)
    assert message.count("\n") == 1


def test_the_template_of_a_loss_is_a_working_loss(new, tmp_path):
    torch = pytest.importorskip("torch")
    file = new.make("loss", "bold_loss", root=tmp_path)
    assert file == tmp_path / "src" / "calibrant" / "losses" / "bold_loss.py"
    loss = cal.losses.make(f"{file}:alpha=1")
    surprise = -np.log(0.25)
    values = float(loss(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([0])))
    assert values == pytest.approx(surprise + surprise**2)
    with pytest.raises(InputError, match="expected 0 or more"):
        cal.losses.make(f"{file}:alpha=-1")
