"""Predictions written to a file of any format, whole or not at all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core import about
from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.core.jsonl import write_jsonl
from calibrant.core.predictions import Predictions

SUFFIXES = (".npz", ".parquet", ".csv", ".jsonl")
COLUMNS = {
    "ids": "id",
    "groups": "group",
    "predicted": "predicted",
    "weights": "weight",
    "clusters": "cluster",
}  # array -> column


def save_predictions(p: Predictions, path: str | Path) -> None:
    file = Path(path)
    check_suffix(file)
    if file.suffix == ".npz":
        write_whole(file, lambda stream: np.savez_compressed(stream, **_arrays(p)))
        return
    if file.suffix == ".jsonl":
        columns = _columns(p, file, lists=True)
        write_whole(file, lambda stream: write_jsonl(stream, columns))
        return
    import polars as pl

    frame = pl.DataFrame(_columns(p, file, lists=False))
    write_whole(file, frame.write_parquet if file.suffix == ".parquet" else frame.write_csv)


def check_suffix(file: Path) -> None:
    if file.suffix not in SUFFIXES:
        raise InputError(
            str(file),
            expected=f"a name that ends in {', '.join(SUFFIXES)}",
            got=f"'{file.suffix or file.name}'",
            fix="save the predictions in one of these formats",
        )


def _arrays(p: Predictions) -> dict[str, Any]:
    """What an npz file holds."""
    extras = p.extras.arrays()
    exists = extras.pop("exists", None)
    if p.shape in ("binary", "confidence"):
        score, truth = _one_score(p, plural=True)
        arrays: dict[str, Any] = {score: _one(p), truth: p.labels}
        if p.shape == "confidence":
            extras.pop("predicted", None)
    else:
        values, kind = p.values, p.kind
        if exists is not None:  # logits even of probabilities: only they can say that an option is not there
            values, kind = np.where(exists, p.logits, p.logits.dtype.type(-np.inf)), "logits"
        arrays = {kind: values, "labels": p.labels}
    if p.shape == "choices":
        arrays["shape"] = np.array("choices")
    if p.classes:
        arrays["classes"] = np.array(p.classes)
    if p.extras.seen:
        arrays["seen"] = np.array(p.extras.seen)
    if said := about.written(p.extras):
        arrays["about"] = np.array(said)
    return arrays | extras


def _columns(p: Predictions, file: Path, *, lists: bool) -> dict[str, Any]:
    """What a table holds: one column per class, or one list of them."""
    extras = p.extras.arrays()
    columns: dict[str, Any] = {column: extras[array] for array, column in COLUMNS.items() if array in extras}
    if p.shape in ("binary", "confidence"):
        score, truth = _one_score(p, plural=False)
        columns |= {truth: p.labels, score: _one(p)}
        if p.shape == "confidence":
            columns.pop("predicted", None)
    else:
        columns["label"] = p.labels
        columns |= _per_class(p.kind.removesuffix("s"), p.values, p.extras.exists, file, lists)
    if p.features is not None:
        columns |= _per_class("feature", p.features, None, file, lists)
    if p.shape == "choices":
        columns["shape"] = np.full(p.n, "choices")
    if p.extras.seen:
        columns["seen"] = np.full(p.n, p.extras.seen)
    rows: dict[str, Any] = {name: _list(values) for name, values in columns.items()} if lists else columns
    if p.classes:  # once
        first = list(p.classes) if lists else json.dumps(p.classes, ensure_ascii=False)
        rows["classes"] = [first] + [None] * (p.n - 1)
    if said := about.written(p.extras):
        rows["about"] = [said] + [None] * (p.n - 1)
    return rows


def _per_class(
    stem: str, values: npt.NDArray[Any], exists: npt.NDArray[np.bool_] | None, file: Path, lists: bool
) -> dict[str, Any]:
    """Text in float64, whose digits read back as the very same numbers; what does not exist is left empty."""
    import polars as pl

    exact = values if file.suffix == ".parquet" else values.astype(np.float64)
    if lists:
        rows = exact.tolist()
        if exists is not None:
            rows = [
                [x if there else None for x, there in zip(row, some, strict=True)]
                for row, some in zip(rows, exists.tolist(), strict=True)
            ]
        return {f"{stem}s": rows}
    if exists is None:
        return {f"{stem}_{c}": exact[:, c] for c in range(values.shape[1])}
    series = {f"{stem}_{c}": pl.Series(exact[:, c]) for c in range(values.shape[1])}
    return {
        name: s.set(pl.Series(~exists[:, c]), None) if not exists[:, c].all() else s
        for c, (name, s) in enumerate(series.items())
    }


def _one_score(p: Predictions, *, plural: bool) -> tuple[str, str]:
    """The names of the score and of what was true."""
    if p.shape == "confidence":
        return ("confidence" if p.kind == "probs" else "confidence_logit"), "correct"
    name = "score" if p.kind == "probs" else "margin"
    return (f"{name}s", "labels") if plural else (name, "label")


def _one(p: Predictions) -> npt.NDArray[np.float64]:
    """The one score of every row, as it was given."""
    values = p.values.astype(np.float64)
    return values[:, 1] if p.kind == "probs" else values[:, 1] - values[:, 0]


def _list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else list(values.tolist())
