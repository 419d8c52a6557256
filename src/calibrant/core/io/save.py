"""Write predictions to an npz, Parquet, CSV or JSONL file, completely or not at all."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.files import write_whole
from calibrant.core.io.file_notes import write_notes
from calibrant.core.io.formats import check_format
from calibrant.core.io.jsonl import write_jsonl

if TYPE_CHECKING:  # `Predictions.save` calls this file: the type alone looks back
    from calibrant.core.predictions import Predictions

COLUMNS = {
    "ids": "id",
    "groups": "group",
    "predicted": "predicted",
    "weights": "weight",
    "clusters": "cluster",
}  # array -> column


def save_predictions(p: "Predictions", path: str | Path) -> None:
    file = Path(path)
    check_format(file, file.suffix)
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


def _arrays(p: "Predictions") -> dict[str, Any]:
    """The arrays of an npz file, by name."""
    row_data = _row_arrays(p)
    exists = row_data.pop("option_mask", None)
    if p.task in ("binary", "confidence"):
        score, truth = _one_score(p, plural=True)
        arrays: dict[str, Any] = {score: _one(p)} | _labels(p, truth)
        if p.task == "confidence":
            row_data.pop("predicted", None)
    else:
        values, kind = p.values, p.score_type
        if exists is not None:  # logits even of probabilities: only they can say that an option is not there
            values, kind = np.where(exists, p.logits, p.logits.dtype.type(-np.inf)), "logits"
        arrays = {kind: values} | _labels(p, "labels")
    if p.task == "choice":
        arrays["task"] = np.array("choice")
    if p.classes:
        arrays["classes"] = np.array(p.classes)
    if p.row_data.seen:
        arrays["seen"] = np.array(p.row_data.seen)
    if notes := write_notes(p.row_data.missing, p.row_data.notes):
        arrays["about"] = np.array(notes)
    return arrays | row_data


def _row_arrays(p: "Predictions") -> dict[str, npt.NDArray[Any]]:
    """Data of rows as they were given: weights that are shares in the user's own unit."""
    arrays = p.row_data.arrays()
    return arrays | ({"weights": arrays["weights"] * p.row_data.unit} if "weights" in arrays else {})


def _columns(p: "Predictions", file: Path, *, lists: bool) -> dict[str, Any]:
    """The columns of a table, by name: one column per class, or one list of them."""
    row_data = _row_arrays(p)
    columns: dict[str, Any] = {column: row_data[array] for array, column in COLUMNS.items() if array in row_data}
    if p.task in ("binary", "confidence"):
        score, truth = _one_score(p, plural=False)
        columns |= _labels(p, truth) | {score: _one(p)}
        if p.task == "confidence":
            columns.pop("predicted", None)
    else:
        columns |= _labels(p, "label")
        columns |= _per_class(p.score_type.removesuffix("s"), p.values, p.row_data.option_mask, file, lists)
    if p.features is not None:
        columns |= _per_class("feature", p.features, None, file, lists)
    if p.task == "choice":
        columns["task"] = np.full(p.n, "choice")
    if p.row_data.seen:
        columns["seen"] = np.full(p.n, p.row_data.seen)
    rows: dict[str, Any] = {name: _list(values) for name, values in columns.items()} if lists else columns
    if p.classes:  # once
        first = list(p.classes) if lists else json.dumps(p.classes, ensure_ascii=False)
        rows["classes"] = [first] + [None] * (p.n - 1)
    if notes := write_notes(p.row_data.missing, p.row_data.notes):
        rows["about"] = [notes] + [None] * (p.n - 1)
    return rows


def _labels(p: "Predictions", name: str) -> dict[str, Any]:
    return {name: p.labels} if p.labelled else {}


def _per_class(
    stem: str, values: npt.NDArray[Any], exists: npt.NDArray[np.bool_] | None, file: Path, lists: bool
) -> dict[str, Any]:
    """One column per class in float64, whose digits read back as the same numbers; absent options are left empty."""
    import polars as pl

    exact = values if file.suffix == ".parquet" else values.astype(np.float64)
    if lists:
        rows = exact.tolist()
        if exists is not None:
            rows = [
                [x if there else None for x, there in zip(row, has_option, strict=True)]
                for row, has_option in zip(rows, exists.tolist(), strict=True)
            ]
        return {f"{stem}s": rows}
    if exists is None:
        return {f"{stem}_{c}": exact[:, c] for c in range(values.shape[1])}
    series = {f"{stem}_{c}": pl.Series(exact[:, c]) for c in range(values.shape[1])}
    return {
        name: s.set(pl.Series(~exists[:, c]), None) if not exists[:, c].all() else s
        for c, (name, s) in enumerate(series.items())
    }


def _one_score(p: "Predictions", *, plural: bool) -> tuple[str, str]:
    """The names of the score column and the outcome column."""
    if p.task == "confidence":
        return ("confidence" if p.score_type == "probs" else "confidence_logit"), "correct"
    name = "score" if p.score_type == "probs" else "margin"
    return (f"{name}s", "labels") if plural else (name, "label")


def _one(p: "Predictions") -> npt.NDArray[np.float64]:
    """The one score of every row, as it was given."""
    values = p.values.astype(np.float64)
    return values[:, 1] if p.score_type == "probs" else values[:, 1] - values[:, 0]


def _list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else list(values.tolist())
