"""Damaged folders of trainings, recipes, plans and stores of studies: a clear error, or what is still right."""

import functools
import json
import shutil
import tempfile
from pathlib import Path

import mutate_json as mutate
import numpy as np
import polars as pl
import pytest
from toml_writer import write_toml

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch
from fuzz_counts import FEW, MANY, count, record
from hostile_predictions import ODD_COLUMNS, is_valid
from hostile_words import ended, mutated_frame, mutated_tensors, mutated_toml, nothing_ran, pick, place_evil, put_word
from mutate_bytes import mutated
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from calibrant.core.config.code_trust import would_run
from calibrant.core.predictions import Predictions
from calibrant.studying.expand_plan import jobs_of
from calibrant.studying.job import Outcome
from calibrant.studying.plan_files import read_plan
from calibrant.studying.store import Journal, Store
from calibrant.studying.study import open_study
from calibrant.studying.validate_plan import check_plan
from calibrant.training.loop import train
from calibrant.training.recipe import Data, Optimizer, Recipe, name_entries, read_recipe
from calibrant.training.run import open_run

# -- folders of trainings -------------------------------------------------------------------------


@functools.cache
def whole_run() -> dict[str, bytes]:
    data = Data(name="digits", split="5:1", limit=48, test_limit=24)
    recipe = Recipe(
        title="Tiny", model="resnet_small:depth=8,width=2", epochs=1, batch=16, data=data, optimizer=Optimizer(lr=0.01)
    )
    with tempfile.TemporaryDirectory() as folder:
        train(recipe, Path(folder) / "run")
        return {file.name: file.read_bytes() for file in (Path(folder) / "run").iterdir() if file.is_file()}


def damaged_file(name: str, data: bytes, rng: np.random.Generator) -> bytes:
    """Damage that fits the format of a file."""
    if rng.random() < 0.25:
        return mutated(data, rng)
    if name.endswith(".json"):
        if rng.random() < 0.4:
            state = json.loads(data)
            put_word(state, rng)
            return json.dumps(state).encode()
        return mutate.mutated_text(data.decode(), rng)
    if name.endswith(".safetensors"):
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        if rng.random() < 0.4:
            header["calibrant"] = mutate.mutated_text(header["calibrant"], rng).decode("utf-8", "replace")
        return bytes_of(mutated_tensors(tensors_of(data), rng), header)
    if name.endswith(".parquet"):
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
            Path(file.name).write_bytes(data)
            mutated_frame(pl.read_parquet(data), rng, ODD_COLUMNS).write_parquet(file.name)
            return Path(file.name).read_bytes()
    return mutated(data, rng)


def open_a_run(rng, folder):
    run = folder / "run"
    if not run.exists():
        run.mkdir()
        for name, data in whole_run().items():
            (run / name).write_bytes(data)
    name = pick(rng, ["run.json", "run.json", *(n for n in sorted(whole_run()) if not n.startswith("."))])
    (run / name).write_bytes(damaged_file(name, whole_run()[name], rng))

    def look():
        opened = open_run(run)
        log = opened.log
        assert log.height >= 0
        for p in (opened.val, opened.test):
            assert is_valid(p)
        assert Recipe.from_dict(opened.recipe.to_dict()) == opened.recipe
        assert not any(would_run(spec, model=key == "model") for key, spec in name_entries(opened.recipe).items())
        network = opened.network()
        x = torch.zeros(
            2, opened.shape.channels, opened.shape.size, opened.shape.size, dtype=next(network.parameters()).dtype
        )
        with torch.no_grad():  # finite weights may still overflow: predictions of such a network are refused
            logits = network(x).double().numpy()
        p = Predictions.from_logits(logits, [0, 0])
        assert (p.n, p.k) == (2, opened.shape.classes)
        assert is_valid(p)

    how = ended(look)
    (run / name).write_bytes(whole_run()[name])
    assert nothing_ran(folder)
    return how


# -- recipes and plans ----------------------------------------------------------------------------

RECIPE = {
    "title": "{data} by {loss}", "extends": "base.toml", "model": "resnet8:width=8", "loss": "ce + 0.5*mdca",
    "epochs": 10, "batch": 32, "seed": 3, "select": "best", "patience": 2,
    "data": {"name": "digits", "split": "8:1:1", "limit": 100},
    "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9},
    "schedule": {"name": "step", "milestones": [5, 8], "factor": 0.1},
    "scale": {"small": {"epochs": 2, "data": {"limit": 10}}, "code": {"model": "resnet8"}},
}  # fmt: skip
BASE = {"precision": "32-true", "meta": {"objective": "ce"}, "data": {"pad": 2, "augment": "crop"}}
CHOICES = {
    "data": {"digits": {"title": "Digits", "data": {"name": "digits"}}, "mini": {"data": {"name": "fashion_mini"}}},
    "loss": {"ce": {"loss": "ce"}, "focal": {"loss": "focal:gamma=2", "with": {"data": ["digits"]}}},
}
CHANGES = (
    "epochs=3",
    "scale=small",
    "scale=code",
    "seed=-1",
    "data.limit=5",
    "model=resnet",
    "epochs=abc",
    "x=1",
    "lr",
)


def read_a_recipe(rng, folder):
    values, name = RECIPE, "recipe.toml"
    if rng.random() < 0.5:
        values, name = {**RECIPE, "choices": CHOICES, "exceptions": {"digits-*": {"epochs": 4}}}, "recipe/digits-focal"
    (folder / "recipe.toml").write_bytes(mutated_toml(values, rng))
    base = {"extends": "recipe.toml"} if rng.integers(20) == 0 else BASE
    (folder / "base.toml").write_bytes(mutated_toml(base, rng) if rng.random() < 0.3 else write_toml(base).encode())
    changes = [pick(rng, CHANGES)] if rng.random() < 0.3 else []

    def look():
        recipe = read_recipe(name, changes)
        assert Recipe.from_dict(recipe.to_dict()) == recipe
        assert 0 <= recipe.epochs <= 1_000_000
        assert np.isfinite(recipe.optimizer.lr)
        assert not any(
            would_run(spec, model=key == "model")
            for key, spec in name_entries(recipe).items()
            if "model=" not in str(changes)
        )

    how = ended(look)
    assert nothing_ran(folder)
    return how


PLAN = {
    "title": "Shared", "base": "losses",
    "grid": {"data": ["digits"], "model": ["resnet8", "resnet8:width=4"], "title": ["py"], "seed": [1, 2]},
    "recipe": {"epochs": 1, "batch": 32, "data": {"limit": 96, "split": "4:1"}},
    "methods": {"CE": {"choice": "ce"}, "focal": {"recipe": {"loss": "focal:gamma=2"}, "only": {"seed": [1]}}},
    "after": {
        "measures": ["ece", "accuracy"], "calibrators": ["identity", "temperature"],
        "rescorers": {"trust": "trust_score", "clamped": "clamping:seed={seed}"},
        "shifts": {"noisy": "corrupt gaussian_noise:severity=2", "other": "fashion_mini"},
    },
    "entries": {"TS": {"method": "CE", "calibrator": "temperature"}, "C": {"method": "CE", "rescorer": "clamped"}},
    "alike": {"resnet8": "resnet8:width=4"}, "means": {"model": {"resnet8": {"model": "resnet8", "data": {"pad": 2}}}},
    "names": {"data": {"digits": "CIFAR-10"}}, "table": [{"title": "Table 1", "entries": ["CE"]}],
    "claim": [{"says": "lower", "of": "focal", "against": "TS", "measure": "ece", "is": "lower"}],
    "scale": {"smoke": {"recipe": {"epochs": 1}, "grid": {"seed": [1]}}},
}  # fmt: skip


def read_a_plan(rng, folder):
    file = folder / "plan.toml"
    file.write_bytes(mutated_toml(PLAN, rng))

    def look():
        plan = read_plan(file, scale=pick(rng, ["paper", "paper", "smoke"]))
        check_plan(plan, file)
        jobs = list(jobs_of(plan))
        assert len({job.key for job in jobs}) == len(jobs)
        for job in jobs:
            texts = json.loads(json.dumps(dict(job.options)))
            assert not any(".py" in str(value) or value == "os:system" for value in texts.values())
            assert not would_run(str(texts.get("model", "")), model=True)

    how = ended(look)
    assert nothing_ran(folder)
    return how


# -- stores of studies ----------------------------------------------------------------------------


@functools.cache
def whole_study() -> dict[str, bytes]:
    """A study of which a part is finished: parts, a journal, and a job that failed."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "study"
        folder.mkdir()
        (folder / "plan.toml").write_text(write_toml(PLAN))
        facts = {"version": 1, "title": "Shared", "scale": "paper", "store": "../jobs"}
        (folder / "study.json").write_text(json.dumps(facts))
        study, store = open_study(folder), Store(Path(place) / "jobs")
        for half in (0, 1):
            journal = Journal(store, "local")
            for cell in study.cells[half::2]:
                for job in cell.jobs[:-1]:
                    journal.add(Outcome(job.key, job.kind, [{"n": 9}], seconds=0.5))
                rows = [
                    {
                        "rescorer": "",
                        "calibrator": c,
                        "set": "test",
                        "measure": m,
                        "value": 0.25,
                        "n": 9,
                        "k": 3,
                        "why": "",
                    }
                    for c in ("identity", "temperature")
                    for m in ("ece", "accuracy")
                ]
                failed = "Traceback\nValueError: no" if cell.method == "focal" else ""
                journal.add(Outcome(cell.judge.key, "judge", [] if failed else rows, failed, 1.0))
            journal.stream.close()
            if half == 0:
                journal.compact()
        return {str(f.relative_to(place)): f.read_bytes() for f in Path(place).rglob("*") if f.is_file()}


def open_a_store(rng, folder):
    place = folder / "place"
    if not place.exists():
        for name, data in whole_study().items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)
    files = sorted(name for name in whole_study() if not name.endswith((".toml", "lock")))
    name = pick(rng, files)
    data = whole_study()[name]
    if name.endswith(".jsonl") and rng.random() < 0.8:
        lines = data.decode().splitlines()
        at = int(rng.integers(len(lines)))
        match rng.integers(4):
            case 0:
                lines[at] = mutate.mutated_text(lines[at], rng).decode("utf-8", "replace")
            case 1:
                state = json.loads(lines[at])
                mutate._nudge(state, rng)
                lines[at] = json.dumps(state)
            case 2:
                lines[-1] = lines[-1][: int(rng.integers(len(lines[-1])))]  # as a kill leaves it
            case _:
                lines.insert(at, lines[at])
        data = "\n".join(lines).encode()
    elif rng.integers(8):
        data = damaged_file(name, data, rng)
    (place / name).write_bytes(data)

    def look():
        study = open_study(place / "study")
        status = study.status()
        assert status.done + status.failed + status.missing == status.total == len(study.jobs)
        rows = study.rows()
        assert {"method", "entry", "measure", "value"} <= set(rows.columns)
        if rows.height:
            assert rows["value"].drop_nulls().cast(pl.Float64).is_finite().all()
            assert set(rows["method"]) <= set(study.plan.methods)
        for finding in study.claims():
            assert isinstance(str(finding), str)

    how = ended(look)
    (place / name).write_bytes(whole_study()[name])
    assert nothing_ran(folder)
    return how


CASES = {"runs": open_a_run, "recipes": read_a_recipe, "plans": read_a_plan, "stores of studies": open_a_store}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    place_evil(tmp_path)
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize("what", CASES)
def test_what_trainings_leave_is_refused_in_words_or_right(what, folder):
    counts = count(CASES[what], FEW, folder)
    assert counts["other"] == 0
    assert counts["refused"] > FEW / 5
    assert counts["right"] > FEW / 6


@pytest.mark.slow
@pytest.mark.parametrize("what", CASES)
def test_much_that_trainings_leave_is_refused_in_words_or_right(what, folder):
    record(what, count(CASES[what], MANY, folder, first=FEW))
