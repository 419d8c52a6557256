"""A study of a network that others trained: halves of its test images, and what all halves share."""

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch")

from local_jobs import Here

from calibrant import datasets
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.studying.engine import run_jobs
from calibrant.studying.expand_plan import cells_of
from calibrant.studying.plan_cost import plan_cost
from calibrant.studying.plan_files import read_plan
from calibrant.studying.study import open_plan
from calibrant.training.run import open_run

PLAN = """
title = "Not ours"
base = "losses"
[grid]
seed = [1, 2]
data = ["digits"]
model = ["resnet8:width=4"]
[recipe]
epochs = 0
batch = 64
data = { limit = 300, test_limit = 100, augment = "none" }  # halves are of all test images
[methods]
own = {}
scored = {}
[after]
halves = true
calibrators = ["identity", "temperature", "auto"]
measures = ["ece", "nll"]
shifts = { noisy = { set = "corrupt gaussian_noise:severity=2", only = { method = ["own"] } } }
rescorers = { trust = "trust_score", net = "confidnet:epochs=1,width=4,depth=1", ratio = "density_ratio" }
[entries]
"TS" = { method = "own", calibrator = "temperature" }
"trust" = { method = "scored", rescorer = "trust" }
"net" = { method = "scored", rescorer = "net" }
"ratio" = { method = "scored", rescorer = "ratio" }
[[claim]]
says = "TS is lower"
of = "TS"
against = "own"
measure = "nll"
is = "lower"
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    place = tmp_path_factory.mktemp("studies")
    (place / "plan.toml").write_text(PLAN)
    study = open_plan(place / "plan.toml", place / "halves")
    ended = run_jobs(study.jobs, study.store, Here(study.store.folder))
    assert not ended.failed, study.status().failures
    return study


def test_what_does_not_depend_on_the_half_is_computed_once(finished):
    kinds = Counter(job.kind for job in finished.jobs)
    # Of both halves: the run, the noisy images and ConfidNet, which learns from training images, are halved.
    assert kinds == {"train": 1, "shift": 1, "predict": 1, "halve": 6, "rescore": 5, "judge": 4}
    assert plan_cost(finished.plan).jobs == kinds


def test_halves_are_those_of_the_data_set(finished):
    one, other = (datasets.halves(datasets.make("digits").load("test"), 1)[i] for i in (0, 1))
    for cell in cells_of(finished.plan)[:2]:
        half = next(job for job in cell.jobs if job.kind == "halve")
        folder = finished.store.files(half.key)
        assert half.options == {"seed": 1}
        assert list(Predictions.load(folder / "val.npz").ids) == list(one.ids)
        assert list(Predictions.load(folder / "test.npz").ids) == list(other.ids)
        run = open_run(folder)
        assert (run.recipe.data.split, run.recipe.data.split_seed) == ("half test", 1)


def test_rows_are_those_of_the_other_half(finished):
    rows = finished.rows().filter(pl.col("measure") == "nll")
    assert set(rows.filter(pl.col("method") == "own")["set"]) == {"test", "noisy"}
    assert set(rows["entry"]) >= {"own", "TS", "trust", "net", "ratio"}
    assert rows.filter(pl.col("value").is_null()).height == 0
    half = next(job for job in finished.cells[0].jobs if job.kind == "halve")
    p = Predictions.load(finished.store.files(half.key) / "test.npz")
    own = rows.filter((pl.col("entry") == "own") & (pl.col("seed") == 1) & (pl.col("set") == "test"))
    probability = p.probs[np.arange(p.n), p.labels]
    assert own["value"].item() == pytest.approx(-np.log(probability).mean())
    spent = finished.store.rows("judge")
    assert (spent.filter(pl.col("calibrator") == "auto")["cpu_seconds"] > 0).all()


def test_halves_of_the_same_images_widen_the_interval(finished):
    """Two seeds that share images: the variance of their mean is not half of one, but 1 + 1/2 of it."""
    finding = finished.claims()[0]
    rows = finished.rows().filter((pl.col("measure") == "nll") & (pl.col("set") == "test"))
    value = {(row["entry"], row["seed"]): row["value"] for row in rows.to_dicts()}
    differences = np.array([value["TS", seed] - value["own", seed] for seed in (1, 2)])
    reach = 12.706204736 * differences.std(ddof=1) * np.sqrt(1 / 2 + 1)  # t of 97.5 % with one degree of freedom
    assert finding.overall.high - finding.overall.difference == pytest.approx(reach)
    assert finding.seeds_to_settle is None


def test_a_rescorer_that_is_code_is_not_run_before_it_is_allowed(tmp_path):
    """Plans of halves expand by what their rescorers say, so opening one of a stranger ran its file."""
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "plan.toml").write_text(PLAN.replace('trust = "trust_score"', f'trust = "{tmp_path}/evil.py"'))
    with pytest.raises(InputError, match="allow"):
        open_plan(tmp_path / "plan.toml", tmp_path / "out")
    assert not (tmp_path / "ran").exists()


def test_a_training_with_halves_is_refused(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.replace("epochs = 0", "epochs = 2"))
    with pytest.raises(InputError, match=r"after.halves: expected no training, got 2 epochs"):
        cells_of(read_plan(tmp_path / "plan.toml"))


def test_the_plan_of_published_networks_names_what_the_example_has(monkeypatch):
    plan = read_plan("published-networks")
    code = (Path(__file__).parents[2] / "examples" / "cifar_resnet.py").read_text()
    for cell in cells_of(plan):
        name = cell.recipe.model.removeprefix("cifar_resnet.py:")
        assert f"def {name}()" in code
        assert cell.recipe.weights.startswith(name)
    trained = {cell.jobs[0].key for cell in cells_of(plan)}
    assert len(trained) == 3  # networks, whatever the halves
