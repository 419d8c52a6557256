"""`calibrant demo`: train, measure, repair, report; by the recipe with fewer images, and whole in `make slow`."""

import json

import pytest
from commands import run

from calibrant import Predictions, measures

pytest.importorskip("torch")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The recipe of the demo with few images, and only here."""
    from calibrant.training import recipe

    read = recipe.read_recipe
    few = ["epochs=1", "data.limit=300", "data.test_limit=200"]
    monkeypatch.setattr(recipe, "read_recipe", lambda source, changes=(): read(source, [*changes, *few]))
    return tmp_path


def test_the_demo_trains_measures_repairs_and_reports(tiny):
    done = run("demo", cwd=tiny)
    parts = ["1. Training", "2. Measured", "3. Calibrated", "4. The report"]
    assert [done.stdout.index(part) for part in parts] == sorted(done.stdout.index(part) for part in parts)
    assert "runs/demo/report.html" in done.stdout
    folder = tiny / "runs" / "demo"
    assert {"run.json", "val.npz", "test.npz", "report.html"} <= {file.name for file in folder.iterdir()}
    before = (folder / "last.safetensors").stat().st_mtime_ns
    run("demo", cwd=tiny)  # again: trained already
    assert (folder / "last.safetensors").stat().st_mtime_ns == before
    run("demo", "--seed", 1, cwd=tiny)  # of another seed: begins again
    assert json.loads((folder / "run.json").read_text())["recipe"]["seed"] == 1


def test_json_is_one_document(tmp_path):
    document = json.loads(run("demo", "--no-train", "--json", "--out", tmp_path / "demo").stdout)
    assert document["models"][0]["numbers"]
    assert (tmp_path / "demo" / "report.html").exists()


@pytest.mark.slow
def test_the_whole_demo_is_overconfident_and_repaired(tmp_path):
    out = run("demo", "--out", tmp_path / "demo").stdout
    assert ": overconfident by " in out
    val, test = (Predictions.load(tmp_path / "demo" / name) for name in ("val.npz", "test.npz"))
    ece = measures.make("ece")
    assert test.confidence.mean() - test.correct.mean() > 0.02
    from calibrant import fit

    assert ece(fit(val, "temperature").apply(test)) < ece(test) / 2
