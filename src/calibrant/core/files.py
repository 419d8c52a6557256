"""Predictions on disk: npz, Parquet and CSV. Nothing is unpickled, and nothing is half-written."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.columns import NAMED, arrays_of, is_score, missing_from
from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.core.npz import read_npz
from calibrant.core.predictions import Predictions
from calibrant.core.tables import read_table, table_batches
from calibrant.core.validate import check_labels, check_seen
from calibrant.core.views import Kind

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".npz", ".parquet", ".csv")
ARRAYS = ("logits", "probs", "labels", "features", "ids", "groups", "predicted", "seen")


def load_predictions(path: str | Path, *, few_rows: bool = False, labelled: bool = True) -> Predictions:
    """Predictions from a file; with `labelled=False` rows without a label get label 0 (out-of-distribution sets)."""
    file = existing(path)
    if file.suffix == ".npz":
        arrays, names = read_npz(file, ARRAYS)
        return _make(file, arrays, names, few_rows, labelled)
    return _from_frame(read_table(file), file, few_rows, labelled)


def save_predictions(p: Predictions, path: str | Path) -> None:
    file = Path(path)
    _check_suffix(file)
    if file.suffix == ".npz":
        arrays: dict[str, Any] = {p.kind: p.values, "labels": p.labels, **p.extras.arrays()}
        if p.extras.seen:
            arrays["seen"] = np.array(p.extras.seen)
        write_whole(file, lambda f: np.savez_compressed(f, **arrays))
        return
    import polars as pl

    stem = {"logits": "logit", "probs": "prob"}[p.kind]
    extras = p.extras.arrays()
    columns: dict[str, Any] = {name: extras[array] for name, array in NAMED.items() if array in extras}
    columns["label"] = p.labels
    columns |= _columns(stem, p.values, file)
    if p.features is not None:
        columns |= _columns("feature", p.features, file)
    if p.extras.seen:
        columns["seen"] = np.full(p.n, p.extras.seen)
    frame = pl.DataFrame(columns)
    write_whole(file, frame.write_parquet if file.suffix == ".parquet" else frame.write_csv)


def read_batches(path: str | Path, rows: int) -> Iterator[Predictions]:
    """Scores and labels of a Parquet or CSV file of any length, at most `rows` rows at a time, in constant memory."""
    if rows < 1:
        raise InputError("rows", expected="at least 1 at a time", got=str(rows), fix="use 100000")
    file = existing(path)
    if file.suffix == ".npz":
        raise InputError(
            str(path),
            expected="a .parquet or .csv file to stream",
            got=".npz",
            fix="measure it without --stream",
        )
    start = 0
    for frame in table_batches(file, rows):
        try:
            yield _from_frame(frame.select(s for s in frame if is_score(s.name)), file, few_rows=True)
        except InputError as error:
            raise InputError.inside(f"rows from {start} on, numbered from there", error) from None
        start += len(frame)
    if start == 0:
        raise InputError(str(path), expected="at least one row", got="none", fix="write the file again")


def existing(path: str | Path) -> Path:
    """The path of a file that is there, not empty, and has one of our suffixes."""
    file = Path(path)
    if not file.exists():
        near = sorted(f.name for s in SUFFIXES for f in file.parent.glob(f"*{s}"))[:5]
        raise InputError(
            str(path),
            expected="a file of predictions",
            got="no such file",
            fix=f"this folder has {', '.join(near)}" if near else "check the path",
        )
    if file.is_dir():
        raise InputError(str(path), expected="a file", got="a folder", fix="name a file inside it")
    if not file.is_file():
        raise InputError(str(path), expected="a file", got="a pipe or a device", fix="write it to a file first")
    _check_suffix(file)
    if file.stat().st_size == 0:
        raise InputError(str(path), expected="predictions", got="an empty file", fix="write the file again")
    return file


def _check_suffix(file: Path) -> None:
    if file.suffix not in SUFFIXES:
        raise InputError(
            str(file),
            expected=f"a name that ends in {', '.join(SUFFIXES)}",
            got=f"'{file.suffix or file.name}'",
            fix="save the predictions in one of these formats",
        )


def _columns(stem: str, values: Floats, file: Path) -> dict[str, Any]:
    """One column per class; CSV in float64, whose digits read back as the very same numbers."""
    exact = values.astype(np.float64) if file.suffix == ".csv" else values
    return {f"{stem}_{c}": exact[:, c] for c in range(values.shape[1])}


def _from_frame(frame: "pl.DataFrame", file: Path, few_rows: bool, labelled: bool = True) -> Predictions:
    if frame.height == 0:
        raise InputError(
            str(file), expected="at least two rows", got="a header and no rows", fix="write the file again"
        )
    return _make(file, arrays_of(frame, file), frame.columns, few_rows, labelled)


def _make(file: Path, arrays: dict[str, Any], names: list[str], few_rows: bool, labelled: bool) -> Predictions:
    """Predictions, or an error that names the file."""
    kind = _one_kind(str(file), arrays, names)
    if "labels" not in arrays:
        if labelled:
            what = "an array named labels" if file.suffix == ".npz" else "a column named label"
            raise missing_from(str(file), what, names)
        arrays["labels"] = np.zeros(len(np.atleast_1d(arrays[kind])), dtype=np.int64)
    make = Predictions.from_logits if kind == "logits" else Predictions.from_probs
    known: dict[str, Any] = {extra: arrays.get(extra) for extra in ("features", "ids", "groups")}
    try:
        p = make(arrays[kind], arrays["labels"], few_rows=few_rows, **known)
        if "predicted" not in arrays and "seen" not in arrays:
            return p
        predicted = check_labels(arrays["predicted"], p.n, p.k, "predicted") if "predicted" in arrays else None
        seen = check_seen(arrays["seen"]) if "seen" in arrays else 0.0
        return Predictions(p.values, p.labels, kind, replace(p.extras, predicted=predicted, seen=seen))
    except InputError as error:
        raise InputError.inside(str(file), error) from None


def _one_kind(name: str, arrays: dict[str, Any], names: list[str]) -> Kind:
    if "logits" in arrays and "probs" in arrays:
        raise InputError(name, expected="logits or probs", got="both", fix="keep one: calibrant never guesses which")
    if "logits" not in arrays and "probs" not in arrays:
        raise missing_from(name, "logits or probs (in tables: logit_0, logit_1, ... or prob_0, prob_1, ...)", names)
    return "logits" if "logits" in arrays else "probs"
