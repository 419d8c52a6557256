"""Predictions on disk: npz, Parquet and CSV. Nothing is unpickled, and nothing is half-written."""

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.predictions import Kind, Predictions
from calibrant.core.validate import check_labels

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".npz", ".parquet", ".csv")


def load_predictions(path: str | Path, *, few_rows: bool = False, labelled: bool = True) -> Predictions:
    """Predictions from a file; with `labelled=False` rows without a label get label 0 (out-of-distribution sets)."""
    file = existing(path)
    if file.suffix == ".npz":
        return _load_npz(file, few_rows, labelled)
    return _from_frame(_read_frame(file), str(path), few_rows, labelled)


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
    columns: dict[str, Any] = {name: extras[array] for name, array in _NAMED_COLUMNS.items() if array in extras}
    columns["label"] = p.labels
    columns |= _columns(stem, p.values, file)
    if p.features is not None:
        columns |= _columns("feature", p.features, file)
    if p.extras.seen:
        columns["seen"] = np.full(p.n, p.extras.seen)
    frame = pl.DataFrame(columns)
    write_whole(file, frame.write_parquet if file.suffix == ".parquet" else frame.write_csv)


def _columns(stem: str, values: Floats, file: Path) -> dict[str, Any]:
    """One column per class; CSV in float64, whose digits read back as the very same numbers."""
    exact = values.astype(np.float64) if file.suffix == ".csv" else values
    return {f"{stem}_{c}": exact[:, c] for c in range(values.shape[1])}


def write_whole(path: str | Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Write to a temporary name beside `path`, then rename: a reader never sees half a file."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def existing(path: str | Path) -> Path:
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


def _load_npz(file: Path, few_rows: bool, labelled: bool) -> Predictions:
    import zipfile
    import zlib

    try:
        if not zipfile.is_zipfile(file):
            raise zipfile.BadZipFile("not a zip archive, or cut short")
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if name in _NPZ_NAMES}
            names = archive.files
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise InputError(
                str(file),
                expected="plain arrays",
                got="pickled Python objects, which could run code",
                fix="save number arrays: np.savez(path, logits=..., labels=...)",
            ) from error
        raise _unreadable(file, error) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, NotImplementedError, RuntimeError) as error:
        raise _unreadable(file, error) from error
    kind = _one_kind(str(file), "logits" in arrays, "probs" in arrays, names)
    if "labels" not in arrays:
        if labelled:
            raise _missing(str(file), "an array named labels", names)
        arrays["labels"] = np.zeros(len(arrays[kind]), dtype=np.int64)
    return _make(str(file), kind, arrays, few_rows)


def _make(name: str, kind: Kind, arrays: dict[str, Any], few_rows: bool) -> Predictions:
    """Predictions, or an error that names the file."""
    make = Predictions.from_logits if kind == "logits" else Predictions.from_probs
    known = {extra: arrays.get(extra) for extra in ("features", "ids", "groups")}
    try:
        p = make(arrays[kind], arrays["labels"], few_rows=few_rows, **known)
        if "predicted" not in arrays and "seen" not in arrays:
            return p
        predicted = check_labels(arrays["predicted"], p.n, p.k, "predicted") if "predicted" in arrays else None
        extras = replace(p.extras, predicted=predicted, seen=float(np.max(arrays.get("seen", 0.0))))
        return Predictions(p.values, p.labels, kind, extras)
    except InputError as error:
        raise InputError.inside(name, error) from None


_NAMED_COLUMNS = {"id": "ids", "group": "groups", "predicted": "predicted"}  # in tables -> in Predictions
_NPZ_NAMES = ("logits", "probs", "labels", "features", "ids", "groups", "predicted", "seen")


def _read_frame(file: Path) -> "pl.DataFrame":
    import polars as pl

    try:
        return pl.read_parquet(file) if file.suffix == ".parquet" else pl.read_csv(file, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _unreadable(file, error) from error


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
    frames = _parquet_batches(file, rows) if file.suffix == ".parquet" else _csv_batches(file, rows)
    start = 0
    for frame in frames:
        try:
            yield _from_frame(frame.select(s for s in frame if _is_needed(s.name)), str(path), few_rows=True)
        except InputError as error:
            raise InputError.inside(f"rows from {start} on, numbered from there", error) from None
        start += len(frame)
    if start == 0:
        raise InputError(str(path), expected="at least one row", got="none", fix="write the file again")


def _is_needed(column: str) -> bool:
    return column in ("label", "labels", "logits", "probs", "predicted") or any(
        _is_numbered(column, s) for s in ("logit", "prob")
    )


def _parquet_batches(file: Path, rows: int) -> Iterator["pl.DataFrame"]:
    import polars as pl

    try:
        lazy = pl.scan_parquet(file)
        total = lazy.select(pl.len()).collect().item()
        for start in range(0, total, rows):
            yield lazy.slice(start, rows).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _unreadable(file, error) from error


def _csv_batches(file: Path, rows: int) -> Iterator["pl.DataFrame"]:
    """Blocks of lines, each parsed with the header in front: the file is read once, from top to bottom."""
    import io
    from itertools import islice

    import polars as pl

    with file.open("rb") as stream:
        header = stream.readline()
        while lines := list(islice(stream, rows)):
            while b"".join(lines).count(b'"') % 2 and (more := stream.readline()):
                lines.append(more)  # a quoted cell with a line break in it
            try:
                yield pl.read_csv(io.BytesIO(header + b"".join(lines)), infer_schema_length=None)
            except pl.exceptions.PolarsError as error:
                raise _unreadable(file, error) from error


def _from_frame(frame: "pl.DataFrame", name: str, few_rows: bool, labelled: bool = True) -> Predictions:
    """Columns label and logit_0.. or prob_0.. (or one list column logits or probs); id and feature_0.. if there."""
    names = frame.columns
    if frame.height == 0:
        raise InputError(name, expected="at least two rows", got="a header and no rows", fix="write the file again")
    kind = _one_kind(name, "logits" in names or "logit_0" in names, "probs" in names or "prob_0" in names, names)
    label = "label" if "label" in names else "labels"
    if label not in names:
        if labelled:
            raise _missing(name, "a column named label", names)
        frame = frame.with_columns(_zeros(label))
    stem = kind.removesuffix("s")
    arrays = {
        kind: _list_column(frame, kind, name) if kind in names else _numbered(frame, stem, name),
        "labels": _no_gaps(frame, label, name).to_numpy(),
    }
    for column, array in _NAMED_COLUMNS.items():
        if column in names:
            arrays[array] = np.array(_no_gaps(frame, column, name).to_list())
    if "feature_0" in names:
        arrays["features"] = _numbered(frame, "feature", name)
    if "seen" in names:
        arrays["seen"] = _no_gaps(frame, "seen", name).to_numpy()
    return _make(name, kind, arrays, few_rows)


def _zeros(name: str) -> Any:
    import polars as pl

    return pl.lit(0).alias(name)


def _numbered(frame: "pl.DataFrame", stem: str, name: str) -> Any:
    have = {int(c.removeprefix(f"{stem}_")) for c in frame.columns if _is_numbered(c, stem)}
    columns = [f"{stem}_{i}" for i in range(len(have))]
    if missing := [c for c in columns if c not in frame.columns]:
        raise _missing(name, f"a column named {missing[0]}", frame.columns)
    for column in columns:
        series = _no_gaps(frame, column, name)
        if not series.dtype.is_numeric():
            raise InputError(
                f"{name}, column {column}",
                expected="numbers",
                got=f"type {series.dtype}",
                fix="check the cells",
            )
    return frame.select(columns).to_numpy()


def _list_column(frame: "pl.DataFrame", column: str, name: str) -> Any:
    series = _no_gaps(frame, column, name)
    if not series.dtype.is_nested():
        raise InputError(
            f"{name}, column {column}",
            expected="a list of numbers in every row",
            got=f"type {series.dtype}",
            fix=f"use a list column, or columns {column.removesuffix('s')}_0, {column.removesuffix('s')}_1, ...",
        )
    lists = series.to_list()
    if len({len(row) for row in lists}) != 1:
        raise InputError(
            f"{name}, column {column}",
            expected="lists of one length",
            got="lists of different lengths",
            fix="every row needs one number per class",
        )
    values = np.array(lists)
    if values.dtype == object:
        raise InputError(f"{name}, column {column}", expected="numbers", got="missing values", fix="fill or drop them")
    return values


def _no_gaps(frame: "pl.DataFrame", column: str, name: str) -> "pl.Series":
    series = frame[column]
    if gaps := series.null_count():
        raise InputError(
            f"{name}, column {column}",
            expected="a value in every row",
            got=f"{gaps} empty cells",
            fix="fill or drop them",
        )
    return series


def _is_numbered(column: str, stem: str) -> bool:
    return column.startswith(f"{stem}_") and column.removeprefix(f"{stem}_").isdigit()


def _one_kind(name: str, logits: bool, probs: bool, names: list[str]) -> Kind:
    if logits and probs:
        raise InputError(name, expected="logits or probs", got="both", fix="keep one: calibrant never guesses which")
    if not logits and not probs:
        raise _missing(name, "logits or probs (in tables: logit_0, logit_1, ... or prob_0, prob_1, ...)", names)
    return "logits" if logits else "probs"


def _missing(name: str, what: str, names: list[str]) -> InputError:
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return InputError(name, expected=what, got=f"only {shown or 'nothing'}", fix="rename or add it")


def _unreadable(file: Path, error: Exception) -> InputError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return InputError(
        str(file),
        expected=f"a readable {file.suffix} file",
        got=f"a damaged one ({reason})",
        fix="write the file again",
    )
