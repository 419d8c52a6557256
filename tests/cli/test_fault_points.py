"""Commands that are ended between any two writes: the same command again leaves what an undisturbed one leaves."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from killed_command import run
from safetensors.numpy import load_file

from calibrant.core.predictions import Predictions
from calibrant.data import DEMO_TEST

TIMES = ("seconds", "train_seconds")
PLAN = """
title = "Tiny"
base = "losses"
[grid]
data = ["digits"]
model = ["resnet8:width=4"]
[recipe]
epochs = 1
batch = 32
data = { limit = 64, test_limit = 60, split = "4:1" }
[methods]
CE = { choice = "ce" }
[after]
measures = ["ece", "accuracy"]
rescorers = { trust = "trust_score" }
[entries]
"CE (trust)" = { method = "CE", rescorer = "trust" }
"""
# What is typed, and what is typed again after a kill: a worker that dies costs its job, which is asked for once more.
COMMANDS = {
    "watch": [["watch", DEMO_TEST, "--state", "OUT/state.json"]],
    "clamp": [["clamp", "RUN", "--override", "what=T", "--out", "OUT"]],
    "confidnet": [["confidnet", "RUN", "--epochs", "2", "--out", "OUT"]],
    "study": [
        ["study", "run", "PLAN", "--out", "OUT/study", "--on", "local:1"],
        ["study", "retry", "OUT/study", "--on", "local:1"],
    ],
    "nas": [["nas", "train", "--sample", "1", "--scale", "smoke", "--on", "local:1", "--out", "OUT", "--retry"]],
}  # fmt: skip


@pytest.fixture
def do(tmp_path, small_run, monkeypatch):
    """Type a command (or the ones after a kill) into a folder of its own; exit codes."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (tmp_path / "plan.toml").write_text(PLAN)
    Predictions.load(DEMO_TEST).save(tmp_path / "rows.csv")

    def do(name, out, fault_at=0):
        places = {
            "RUN": str(small_run),
            "PLAN": str(tmp_path / "plan.toml"),
            str(DEMO_TEST): str(tmp_path / "rows.csv"),
        }
        codes = []
        for words in COMMANDS[name] if not fault_at else COMMANDS[name][:1]:
            typed = [places.get(str(word), str(word)).replace("OUT", str(tmp_path / out)) for word in words]
            codes.append(run(typed, fault_at=fault_at))
        return codes

    return do


def left(folder):
    """What a command has left, without times and without names that a process chose."""
    results = {}
    for file in sorted(f for f in folder.rglob("*") if f.is_file() and not f.name.startswith((".", "part-"))):
        name = str(file.relative_to(folder))
        if "journal" in name or "failed" in name or file.name in ("lock", "state.safetensors"):
            continue
        if file.suffix == ".npz":
            with np.load(file) as arrays:
                results[name] = {key: arrays[key].tolist() for key in arrays.files}
        elif file.suffix == ".safetensors":
            results[name] = {key: value.tolist() for key, value in load_file(file).items()}
        elif file.suffix == ".parquet":
            table = pl.read_parquet(file)
            results[name] = table.drop(c for c in TIMES if c in table.columns).to_dicts()
        elif file.suffix == ".json":
            results[name] = without_times(json.loads(file.read_text()))
    for kind in sorted(folder.rglob("rows/*")):
        table = pl.concat([pl.read_parquet(f) for f in kind.glob("part-*")], how="diagonal_relaxed")
        kept = table.drop(c for c in TIMES if c in table.columns).unique().sort(pl.all())
        results[str(kind.relative_to(folder))] = kept.to_dicts()
    return results


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if "seconds" not in key}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def disturbed(do, tmp_path, name, places):
    """Ended at each of these writes, then typed again: the same is left. How often it was ended."""
    whole = do(name, "whole")
    assert set(whole) <= {0, 1}
    expected, killed = left(tmp_path / "whole"), 0
    assert expected
    for n in places:
        out = f"at-{n}"
        [code] = do(name, out, n)
        if code in (0, 1) and not killed and n == 1:
            pytest.fail("no fault point was passed")
        assert do(name, out)[-1] == whole[-1]
        assert left(tmp_path / out) == expected, n
        shutil.rmtree(tmp_path / out)
        killed += code == 137
        if code in (0, 1) and name not in ("study", "nas"):  # it has ended by itself: that was all
            break
    return killed


@pytest.mark.parametrize(("name", "at"), [("watch", (1, 2, 3)), ("clamp", (2,)), ("confidnet", (3,))])
def test_a_command_that_was_ended_is_finished_by_the_same_command(do, tmp_path, name, at):
    assert disturbed(do, tmp_path, name, at) == min(len(at), 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clamp", "confidnet"])
def test_ended_at_any_write_a_command_is_finished_by_the_same_command(do, tmp_path, name):
    assert disturbed(do, tmp_path, name, range(1, 100)) >= 4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("study", 14), ("nas", 8)])
def test_ended_at_any_write_a_study_goes_on(do, tmp_path, name, most):
    """Workers pass fault points of their own: a job whose worker died is computed again, from where it was."""
    assert disturbed(do, tmp_path, name, range(1, most)) >= 1
