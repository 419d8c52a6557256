"""Damaged data sets, files of NATS-Bench, samples and tables: a clear error, or data that are still right."""

import bz2
import functools
import io
import json
import os
import pickle
import shutil
import tempfile
from collections import OrderedDict
from pathlib import Path

import mutate_json as mutate
import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch")
pytest.importorskip("PIL")

import dataset_files
from fuzz_counts import FEW, MANY, count, record
from hostile_predictions import ODD_COLUMNS, is_valid
from hostile_words import MARK, ended, mutated_frame, nothing_ran, pick, place_evil
from mutate_bytes import mutated

from calibrant import datasets
from calibrant.core.predictions.load import load_predictions
from calibrant.data import NAS
from calibrant.datasets._unpickle import StoredTensor, read_pickled
from calibrant.nas import spaces
from calibrant.nas.answers import answer_all, read_networks
from calibrant.nas.files import accuracies, read_network
from calibrant.nas.query import query
from calibrant.nas.table import open_table

HOSTILE = (*mutate.HOSTILE, -1.0, 100.0, 100.5, "x-valid", b"\xff", (1, 2), np.float32(3), np.arange(3), {1: 2})


class Evil:
    """What a pickle would run if anybody unpickled it."""

    def __reduce__(self):
        return os.system, (f"touch '{MARK}'",)


# -- pickles --------------------------------------------------------------------------------------


def trained_networks() -> dict:
    """A file of one network as the benchmark writes it."""
    sets = ("x-valid", "ori-test")
    trainings = {
        "train_acc1es": {0: 20.0, 1: 30.0},
        "train_losses": {0: 2.0, 1: 1.5},
        "params": np.float64(0.129306),
        "flop": 15.64737,
        "seed": 777,
        "epochs": 2,
        "latency": [np.float64(0.01)],
        "eval_names": list(sets),
        "eval_acc1es": {f"{name}@{epoch}": 10.0 * epoch + 40 for name in sets for epoch in (0, 1)},
        "eval_losses": {f"{name}@{epoch}": 1.25 for name in sets for epoch in (0, 1)},
        "net_state_dict": None,
    }
    arch = spaces.make("topology").find("7")
    results = {("cifar10", 777): trainings, ("cifar100", 111): {**trainings, "eval_names": ["x-valid"]}}
    return OrderedDict([("02", {"arch_index": 7, "arch_str": arch, "all_results": results})])


def spoil(state: dict, rng: np.random.Generator) -> None:
    """One or two values somewhere below are others, or gone."""
    for _ in range(rng.integers(1, 3)):
        inside, key = state, pick(rng, list(state))
        while isinstance(inside[key], dict) and inside[key] and rng.random() < 0.9:
            inside = inside[key]
            key = pick(rng, list(inside))
        match rng.integers(5):
            case 0:
                del inside[key]
                if not state:
                    return
            case 1 if isinstance(inside[key], int | float):
                by = pick(rng, (2, 0.5, -1, 1.1, 10))
                inside[key] = inside[key] * (by if abs(inside[key]) < 1e300 else int(by))
            case 2:
                inside[key] = Evil()
            case _:
                inside[key] = pick(rng, HOSTILE)


def pickled(state: dict, rng: np.random.Generator) -> bytes:
    kind = rng.integers(6)
    if kind > 2:
        spoil(state, rng)
    data = pickle.dumps(state, int(rng.integers(2, 5)))
    return mutated(data, rng) if kind in (1, 2) else data


def read_a_network(rng, folder):
    file = folder / "000007.pickle.pbz2"
    data = bz2.compress(pickled(trained_networks(), rng))
    file.write_bytes(mutated(data, rng) if rng.integers(10) == 0 else data)
    rows = []

    def look():
        for one in read_network(file):
            rows.append(one)
            assert one.epochs >= 1
            assert one.params >= 0
            assert 0 <= one.flops < np.inf
            for name, value in one.numbers.items():
                assert np.isfinite(value), name
                assert "accuracy" not in name or 0 <= value <= 1
            assert one.config == spaces.make(one.space).index(one.arch)

    how = ended(look)
    table = accuracies(folder)
    assert (len(table.skipped), table.table.height) == ((1, 0) if how == "refused" else (0, len(rows)))
    assert nothing_ran(folder)
    return how


def plain_only(value) -> bool:
    """Data, and what stands for a name that nobody looked up."""
    if type(value).__name__.startswith("_"):
        return True
    if isinstance(value, dict):
        return all(plain_only(one) for pair in value.items() for one in pair)
    if isinstance(value, list | tuple | set):
        return all(map(plain_only, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufSU"
    return value is None or isinstance(value, str | bytes | bool | int | float | np.generic | StoredTensor)


def read_a_batch(rng, folder):
    file, numbers = folder / "data_batch_1", rng.integers(0, 255, (4, 6), dtype=np.uint8)
    batch = {b"data": numbers, b"labels": [1, 2, 0, 1], b"names": [b"a.png"] * 4, "more": {"x": (1.5, None, {1, 2})}}
    whole = rng.integers(4) == 0
    file.write_bytes(pickle.dumps(batch, int(rng.integers(1, 5))) if whole else pickled(batch, rng))

    def look():
        batch = read_pickled(file)
        assert plain_only(dict(batch))
        if whole:
            np.testing.assert_array_equal(batch["data"], numbers)
            assert batch["labels"] == [1, 2, 0, 1]

    how = ended(look)
    assert how == "right" or not whole
    assert nothing_ran(folder)
    return how


# -- data sets ------------------------------------------------------------------------------------

FORMS = {
    "cifar10 binary": (lambda folder: dataset_files.cifar10(folder, "binary"), "cifar10:complete=false", "test", 10),
    "cifar10 python": (lambda folder: dataset_files.cifar10(folder, "python"), "cifar10:complete=false", "test", 10),
    "cifar10 parquet": (lambda folder: dataset_files.cifar10(folder, "parquet"), "cifar10:complete=false", "test", 10),
    "medmnist": (dataset_files.medmnist, "medmnist:name=pathmnist,complete=false", "test", 9),
    "cifar10_1": (dataset_files.cifar10_1, "cifar10_1:complete=false", "test", 10),
    "fashion_mnist": (dataset_files.fashion_mnist, "fashion_mnist:complete=false", "test", 10),
    "svhn": (dataset_files.svhn, "svhn:complete=false", "test", 10),
}


@functools.cache
def whole_data(form: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        FORMS[form][0](Path(folder))
        files = {str(f.relative_to(folder)): f.read_bytes() for f in Path(folder).rglob("*") if f.is_file()}
    return {name: data for name, data in files.items() if not ("train" in name or "data_batch" in name)}


def open_a_data_set(rng, folder):
    """One file of a data set is damaged; or, of images that were decoded before, the file that keeps them."""
    form = pick(rng, list(FORMS))
    _, spec, part, k = FORMS[form]
    place = folder / form.replace(" ", "-")
    shutil.rmtree(place, ignore_errors=True)
    for name, data in whole_data(form).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    name = pick(rng, sorted(whole_data(form)))
    kept = folder / "cache"
    shutil.rmtree(kept, ignore_errors=True)
    expected = None
    if form.endswith("parquet") and rng.random() < 0.5:
        expected = np.array(datasets.make(spec, str(place)).load(part).images)
        cache = next(kept.rglob("*.npy"))
        cache.write_bytes(mutated(cache.read_bytes(), rng))
    elif rng.integers(4):
        (place / name).write_bytes(damaged_data(name, whole_data(form)[name], rng))

    def look():
        loaded = datasets.make(spec, str(place)).load(part)
        assert loaded.images.dtype == np.uint8
        assert loaded.images.ndim == 4
        assert len(loaded.images) == len(loaded.labels) > 0
        assert ((loaded.labels >= 0) & (loaded.labels < k)).all()
        assert int(np.asarray(loaded.images).sum()) >= 0  # every page of a mapped file can be read
        assert expected is None or loaded.images.shape == expected.shape

    how = ended(look)
    assert nothing_ran(folder)
    return how


def damaged_data(name: str, data: bytes, rng: np.random.Generator) -> bytes:
    if name.endswith("test_batch") and rng.random() < 0.7:
        return pickled(pickle.loads(data), rng)
    if name.endswith(".npz") and rng.random() < 0.7:
        with np.load(io.BytesIO(data)) as archive:
            arrays = {key: archive[key] for key in archive.files if key.startswith("test")}
        key = pick(rng, list(arrays))
        damaged = mutate._damage(arrays[key], rng)
        arrays |= {} if damaged is None else {key: damaged}
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        return stream.getvalue()
    if name.endswith(".parquet") and rng.random() < 0.7:
        stream = io.BytesIO()
        mutated_frame(pl.read_parquet(data), rng, ODD_COLUMNS).write_parquet(stream)
        return stream.getvalue()
    return mutated(data, rng)


# -- samples of a harness, and tables of networks -------------------------------------------------


def open_samples(rng, folder):
    """Questions with log-likelihoods of their options, as lm-evaluation-harness logs them."""
    file, n = folder / "samples.jsonl", int(rng.integers(3, 9))
    scores = rng.normal(size=(n, 4)) * 3
    samples = [
        {
            "doc_id": i,
            "doc": {"question": "?", "label": int(rng.integers(4)), "subject": "a"},
            "target": str(int(rng.integers(4))),
            "arguments": [["Q", f" {word}"] for word in "abcd"],
            "resps": [[[float(s), False]] for s in row],
            "filtered_resps": [[float(s), False] for s in row],
            "filter": "none",
            "acc": 1.0,
        }
        for i, row in enumerate(scores)
    ]
    for one, row in zip(samples, scores, strict=True):
        one["acc"] = float(row.argmax() == int(one["target"]))
    whole = rng.integers(4) == 0
    lines = [json.dumps(one) for one in samples]
    if not whole:
        for _ in range(rng.integers(1, 3)):
            at = int(rng.integers(n))
            try:
                lines[at] = mutate.mutated_text(lines[at], rng).decode("utf-8", "replace")
            except ValueError:  # damaged before
                continue
    data = "\n".join(lines).encode()
    file.write_bytes(mutated(data, rng) if not whole and rng.random() < 0.2 else data)

    def look():
        p = load_predictions(file, allow_few_rows=True)
        assert is_valid(p)
        if whole:
            np.testing.assert_allclose(p.values, scores)
            assert p.labels.tolist() == [int(one["target"]) for one in samples]

    how = ended(look)
    assert how == "right" or not whole
    return how


@functools.cache
def networks() -> pl.DataFrame:
    return pl.read_parquet(NAS).group_by("data", maintain_order=True).head(8)


ASKED = ("accuracy", "bin_size", "post_hoc", "measures", "robustness", "across_tasks")
SQL = (
    "select count(*) as n from nas", "select data, avg(accuracy) as a from nas group by data",
    "select * from nas limit 3",
    "select max(pre_ECE_15) from nas where constant", "select nope from nas", "select arch from nas order by accuracy",
)  # fmt: skip


def ask_a_table(rng, folder):
    suffix = pick(rng, (".parquet", ".csv"))
    file = folder / f"networks{suffix}"
    table = networks()
    keep = [c for c in table.columns if rng.random() < 0.97]
    whole = rng.integers(4) == 0
    table = table if whole else mutated_frame(table.select(keep), rng, ODD_COLUMNS)
    try:
        table.write_csv(file) if suffix == ".csv" else table.write_parquet(file)
    except pl.exceptions.PolarsError:  # a list has no form in CSV
        networks().head(3).write_csv(file)
    if not whole and rng.random() < 0.3:
        file.write_bytes(mutated(file.read_bytes(), rng))

    def look():
        table = query(open_table(file), pick(rng, SQL))
        assert table.width >= 1
        [answer] = answer_all(read_networks([file]), [f"{pick(rng, ASKED)}:resamples=5"])
        assert answer.verdict in ("agrees", "differs", "inconclusive")
        numbers = [value for one in answer.numbers for value in vars(one).values() if isinstance(value, float)]
        assert np.isfinite(numbers).all(), answer

    return ended(look)


CASES = {
    "networks of NATS-Bench": read_a_network,
    "pickled batches": read_a_batch,
    "data sets": open_a_data_set,
    "samples of lm-evaluation-harness": open_samples,
    "tables of networks": ask_a_table,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    place_evil(tmp_path)
    return tmp_path


@pytest.mark.parametrize("what", CASES)
def test_data_of_others_are_refused_in_words_or_right(what, folder):
    counts = count(CASES[what], FEW, folder)
    assert counts["other"] == 0
    assert counts["refused"] > FEW / 5
    assert counts["right"] > FEW / 6


@pytest.mark.slow
@pytest.mark.parametrize("what", CASES)
def test_much_data_of_others_is_refused_in_words_or_right(what, folder):
    record(what, count(CASES[what], MANY, folder, first=FEW))
