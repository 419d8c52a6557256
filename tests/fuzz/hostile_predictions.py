"""Files of predictions of every format: right ones, odd ones and damaged ones, by a seeded generator."""

import io
from pathlib import Path

import numpy as np
import polars as pl
from mutate_bytes import mutated

from calibrant.core.predictions import Predictions

SUFFIXES = (".npz", ".parquet", ".csv", ".jsonl")
ODD_ARRAYS = [
    np.array(["x", "é", "[/a]"]), np.array([b"\xc3\xa9", b"\xff"]), np.array([1 + 2j]), np.array([np.nan, np.inf]),
    np.array(["2020-01-01"], dtype="M8[D]"), np.array([-1, 2**62]), np.array([2**64 - 1], dtype=np.uint64),
    np.zeros((2, 2, 2)), np.array(3), np.array([]), np.array([True, False]), np.array([1.5, 0.0]),
    np.zeros(3, dtype=[("a", "f4")]), np.full(3, 0x11FFFF, dtype=np.uint32).view("<U1"), np.float16([1e4, 6e4]),
    np.longdouble([1, 2]), np.array([1e308, -1e308]), np.array(["\x00\x1b[2J", "a\nb", "\u202e"]),
]  # fmt: skip
ODD_COLUMNS = [
    ["x", "é", '"', "a,b", ""], [b"\xff", b"a"], [None, 1], [True, False], [[1.0], [1.0, 2.0]], [[1.0, 2.0]],
    [{"a": 1}], [1e308, -1e308], [float("nan")], [float("inf")], [-1, 5], [2**63], ["2020-01-01"], [0.1, 0.9],
]  # fmt: skip
NAMES = [
    "label", "labels", "logits", "probs", "logit_0", "logit_1", "prob_0", "prob_1", "prob_²", "logit_01", "id", "group",
    "predicted", "seen", "feature_0", "features", "ids", "groups", "prob_" + "9" * 5000, "", " label", "LABEL",
    "score", "margin", "confidence", "confidence_logit", "correct", "weight", "weights", "cluster", "classes", "shape",
]  # fmt: skip
ODD_LINES = [
    "", " ", "{", "[]", "3", "null", '"x"', "{}", '{"label": 1}', '{"label": NaN}', "[" * 5000,
    '{"label": ' + "9" * 5000 + "}",
    '{"logits": [1, "x"]}', '{"logits": [[1]]}', '{"logits": []}', '{"logits": [null, null]}',
    '{"label": 1, "label": 2}',
    '{"score": true}', '{"score": {"a": 1}}', '{"probs": [1e999, 0]}', '{"\\u0000": 1}', '{"label": "\\ud800"}', "\x00",
    '{"doc_id": 0, "resps": [["x"]]}', '{"id": 1.5}', "{'label': 1}", '{"label": 1}{"label": 0}',
]  # fmt: skip


def right_predictions(rng: np.random.Generator, *, other_shapes: bool = False) -> Predictions:
    """Predictions that every command accepts, with some of what else may be known."""
    n, k = int(rng.integers(8, 40)), int(rng.integers(2, 6))
    scores = rng.normal(size=(n, k)) * rng.choice([0.1, 3.0, 30.0])
    labels = rng.integers(0, k, n)
    if other_shapes and rng.integers(2):
        return _other_shape(rng, scores, labels)
    extras = {
        "ids": [None, np.arange(n), np.array([f"row {i}" for i in range(n)])][rng.integers(3)],
        "groups": [None, np.array(["a", "b"])[np.arange(n) % 2]][rng.integers(2)],
        "features": [None, rng.normal(size=(n, 2))][rng.integers(2)],
    }
    if rng.integers(2):
        return Predictions.from_logits(scores, labels, **extras)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return Predictions.from_probs(e / e.sum(axis=1, keepdims=True), labels, **extras)


def _other_shape(rng: np.random.Generator, scores: np.ndarray, labels: np.ndarray) -> Predictions:
    """Binary scores, bare confidences or choices, with weights and clusters."""
    n = len(labels)
    extras = {
        "weights": [None, rng.integers(1, 5, n)][rng.integers(2)],
        "clusters": [None, np.arange(n) // 3][rng.integers(2)],
    }
    kind = rng.integers(4)
    if kind == 0:
        return Predictions.binary(rng.random(n), rng.integers(0, 2, n), **extras)
    if kind == 1:
        named = np.where((labels > 0) | (np.arange(n) == 0), "b", "a")
        return Predictions.binary(scores[:, 0], named, positive="b", logits=True, **extras)
    if kind == 2:
        return Predictions.from_confidence(rng.random(n), rng.integers(0, 2, n), **extras)
    mask = rng.random(scores.shape) < 0.8
    mask[:, :2] = True
    return Predictions.from_logits(scores, rng.integers(0, 2, n), mask=mask, **extras)


def write_odd(p: Predictions, file: Path, rng: np.random.Generator) -> None:
    """The predictions with one to three of their parts replaced, renamed, added or left out."""
    if file.suffix == ".npz":
        arrays = {p.score_type: p.values, "labels": p.labels, **p.row_data.arrays()}
        for _ in range(rng.integers(1, 4)):
            names = ("logits", "probs", "labels", "ids", "groups", "predicted", "seen", "features", *NAMES[-10:])
            name = names[rng.integers(len(names))]
            odd = ODD_ARRAYS[rng.integers(len(ODD_ARRAYS))]
            arrays[name] = np.resize(odd, p.n) if rng.integers(2) and odd.size else odd
            if rng.integers(4) == 0:
                arrays.pop(list(arrays)[rng.integers(len(arrays))])
        np.savez(file, **arrays)
        return
    if file.suffix == ".jsonl" and rng.integers(2):
        p.save(file)
        lines = file.read_text().splitlines()
        for _ in range(rng.integers(1, 3)):
            lines.insert(int(rng.integers(len(lines) + 1)), ODD_LINES[rng.integers(len(ODD_LINES))])
        file.write_text("\n".join(lines))
        return
    buffer = file if file.suffix == ".csv" else file.with_suffix(".parquet")
    p.save(buffer)
    frame = pl.read_csv(file) if file.suffix == ".csv" else pl.read_parquet(buffer)
    for _ in range(rng.integers(1, 4)):
        odd = ODD_COLUMNS[rng.integers(len(ODD_COLUMNS))]
        name = NAMES[rng.integers(len(NAMES))]
        values = [odd[i % len(odd)] for i in range(frame.height)]
        try:
            frame = frame.with_columns(pl.Series(name, values, strict=False))
            if rng.integers(4) == 0 and frame.width > 1:
                frame = frame.drop(frame.columns[rng.integers(frame.width)])
        except pl.exceptions.PolarsError:
            continue
    if rng.integers(5) == 0:
        frame = frame.head(int(rng.integers(3)))
    if file.suffix == ".parquet":
        frame.write_parquet(file)
        return
    if file.suffix == ".jsonl":
        binary = [name for name, dtype in frame.schema.items() if dtype in (pl.Binary, pl.Object)]
        frame.drop(binary).write_ndjson(file)
        return
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested() or dtype in (pl.Binary, pl.Object)]
    flat = frame.drop(nested)
    flat.write_csv(file) if flat.width else file.write_text("")


def hostile_file(suffix: str, rng: np.random.Generator, folder: Path) -> tuple[Path, Predictions | None]:
    """A file, and what it holds where it has not been damaged."""
    p = right_predictions(rng, other_shapes=True)
    file = folder / f"p{suffix}"
    kind = rng.integers(5)
    if kind == 0:
        p.save(file)
        return file, p
    if kind == 1:
        write_odd(p, file, rng)
        return file, None
    if kind == 2:  # the right bytes under another name
        p.save(folder / f"q{SUFFIXES[rng.integers(len(SUFFIXES))]}")
        saved = next(folder.glob("q.*"))
        data = saved.read_bytes()
        saved.unlink()
    else:
        p.save(file)
        data = file.read_bytes()
    file.write_bytes(mutated(data, rng))
    return file, None


def same(p: Predictions, q: Predictions) -> bool:
    """Whether q is p, up to names of digits that CSV reads as numbers."""
    names = [(p.ids, q.ids), (p.groups, q.groups), (p.clusters, q.clusters), (p.weights, q.weights)]
    names.append((p.row_data.option_mask, q.row_data.option_mask))
    return (
        np.array_equal(p.values, q.values)
        and (p.task, p.classes) == (q.task, q.classes)
        and np.array_equal(p.labels, q.labels)
        and p.score_type == q.score_type
        and all((a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in names)
        and (p.features is None) == (q.features is None)
        and (p.features is None or np.array_equal(p.features, q.features))
    )


def is_valid(p: Predictions) -> bool:
    """What every Predictions promises, computed anew."""
    scores = np.asarray(p.values, dtype=np.float64)
    if not np.isfinite(scores).all() or not ((p.labels >= 0) & (p.labels < p.k)).all():
        return False
    if p.score_type == "probs" and (abs(scores.sum(axis=1) - 1).max() > 2e-3 or scores.min() < 0 or scores.max() > 1):
        return False
    buffer = io.BytesIO()
    np.savez(buffer, **p.row_data.arrays())  # plain arrays all of them
    return 0 <= p.row_data.seen <= 1 and bool(np.isfinite(p.confidence).all())
