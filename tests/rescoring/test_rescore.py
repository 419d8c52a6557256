"""Rescoring a run by name: every entry of the catalogue works, and gives what its own command gives."""

import sys

import numpy as np
import pytest

pytest.importorskip("torch")
import calibrant as cal
from calibrant.cli import main
from calibrant.rescorers import CATALOGUE
from calibrant.training.loop import train
from calibrant.training.recipe import Data, Optimizer, Recipe

RECIPE = Recipe(
    model="resnet_small:depth=8,width=4",
    epochs=1,
    batch=32,
    data=Data(name="fashion_mini", split="5:1", limit=300, test_limit=100),
    optimizer=Optimizer(lr=0.01),
)
OPTIONS = {"clamping": "clamping:passes=4,init=data", "confidnet": "confidnet:epochs=2"}
COMMANDS = {
    "clamping": ["clamp", "--override", "passes=4", "--override", "init=data"],
    "confidnet": ["confidnet", "--epochs", "2"],
    "trust_score": ["trust-score"],
    "density_ratio": ["density-ratio"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return train(RECIPE, tmp_path_factory.mktemp("runs") / "run", device="cpu").folder


@pytest.mark.parametrize("name", CATALOGUE.names())
def test_every_entry(folder, tmp_path, monkeypatch, name):
    p = cal.rescore(folder, OPTIONS.get(name, name), tmp_path / "out", device="cpu")
    before = cal.Predictions.load(folder / "test.npz")
    saved = cal.Predictions.load(tmp_path / "out" / "test.npz")
    np.testing.assert_array_equal(saved.ids, before.ids)
    np.testing.assert_array_equal(saved.labels, before.labels)
    np.testing.assert_allclose(saved.confidence, p.confidence, rtol=1e-6)
    assert not np.allclose(p.confidence, before.confidence)
    command, *options = COMMANDS[name]
    out = tmp_path / ("command" if name in ("clamping", "confidnet") else "command.npz")
    words = ["calibrant", command, str(folder), *options, "--out", str(out), "--device", "cpu", "--json"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    again = cal.Predictions.load(out if out.is_file() else out / "test.npz")
    np.testing.assert_allclose(again.confidence, p.confidence, rtol=1e-6)


def test_a_unit_of_a_study(folder, tmp_path):
    from calibrant.studying.jobs import rescore

    (row,) = rescore.run({"rescorer": "clamping:what=T,gamma=0"}, [folder], tmp_path)
    assert row["n"] == 100
    assert row["cpu_seconds"] > 0
    T = cal.fit(cal.Predictions.load(folder / "val.npz"), "temperature").parameters["T"]
    after, before = (cal.Predictions.load(where / "test.npz") for where in (tmp_path, folder))
    np.testing.assert_allclose(after.confidence, before.with_temperature(T).confidence, rtol=1e-4)


def test_bad_names(folder, tmp_path):
    with pytest.raises(cal.InputError, match="did you mean 'clamping'"):
        cal.rescore(folder, "clampin", tmp_path)
    with pytest.raises(cal.InputError, match=r"no run\.json"):
        cal.rescore(tmp_path, "clamping", tmp_path / "out")
    assert not list(tmp_path.iterdir())
