"""Runs on disk: grouped by a key, and never pooled where their recipes differ in more than the seed."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.measuring.run_files import read_runs


@pytest.fixture
def files(tmp_path):
    """Four runs of one loss: two data sets, two seeds each."""
    rng, paths = np.random.default_rng(0), []
    for data in ("fashion", "digits"):
        for seed in (1, 2):
            folder = tmp_path / f"{data}-{seed}"
            folder.mkdir()
            scores = rng.uniform(0.5, 1, 50)
            cal.Predictions.from_confidence(scores, rng.random(50) < scores).save(folder / "test.npz")
            recipe = {"title": f"run {seed}", "seed": seed, "loss": "focal", "data": {"name": data}}
            (folder / "run.json").write_text(json.dumps({"recipe": recipe}))
            paths.append(folder / "test.npz")
    return paths


def test_runs_of_two_data_sets_are_two_groups(files):
    runs = read_runs(files, "loss", cal.Predictions.load)
    assert {name: group.seeds for name, group in runs.items()} == {
        "focal, data.name=fashion": (1, 2),
        "focal, data.name=digits": (1, 2),
    }


def test_runs_that_differ_in_their_seed_are_one_group(files):
    runs = read_runs(files[:2], "loss", cal.Predictions.load)
    assert {name: group.seeds for name, group in runs.items()} == {"focal": (1, 2)}
