"""Predictions on disk: npz, Parquet, CSV and JSONL. Nothing is unpickled, and nothing is half-written."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.assemble import assemble
from calibrant.core.columns import arrays_of, gaps_of, one_score, settled, with_numbers
from calibrant.core.errors import InputError
from calibrant.core.lm_eval import is_lm_eval, read_lm_eval
from calibrant.core.missing import Missing, settle
from calibrant.core.naming import AS_NAMED, Columns, roles_of
from calibrant.core.npz import array_names, read_npz
from calibrant.core.predictions import Predictions
from calibrant.core.tables import read_wanted, table_batches
from calibrant.core.written import SUFFIXES, check_suffix

if TYPE_CHECKING:
    import polars as pl


def load_predictions(
    path: str | Path, *, few_rows: bool = False, labelled: bool = True, columns: Columns = AS_NAMED
) -> Predictions:
    """Predictions from a file; with `labelled=False` rows without a label get label 0 (out-of-distribution sets)."""
    file = existing(path)
    if file.suffix == ".npz":
        return _from_npz(file, few_rows, labelled, columns)
    if file.suffix == ".jsonl" and is_lm_eval(file, columns):
        return read_lm_eval(file, columns)
    frame, names = read_wanted(file, columns.wants)
    return from_table(frame, file, columns, names, few_rows=few_rows, labelled=labelled)


def from_table(
    frame: "pl.DataFrame",
    place: Path | str,
    columns: Columns,
    names: list[str],
    *,
    few_rows: bool = False,
    labelled: bool = True,
) -> Predictions:
    """Predictions from a table in memory; `names` are those of all its columns, also of those not read."""
    if names and frame.height == 0:
        raise InputError(
            str(place), expected="at least two rows", got="a header and no rows", fix="write the file again"
        )
    frame, names = _numbered(frame, names, columns)
    roles = roles_of(names, columns, str(place), labelled=labelled)
    rows, missing = settled(with_numbers(frame, place, roles), place, roles, columns.missing)
    arrays = arrays_of(rows, place, roles)
    return assemble(str(place), arrays, roles, columns, few_rows=few_rows, missing=missing)


def read_batches(
    path: str | Path,
    rows: int,
    *,
    columns: Columns = AS_NAMED,
    on_missing: Callable[[Missing], None] | None = None,
) -> Iterator[Predictions]:
    """Scores and labels of a table of any length, at most `rows` rows at a time, in constant memory.

    `on_missing` is told of every batch how many of its rows had no score; a batch that has none at all is not given.
    """
    if rows < 1:
        raise InputError("rows", expected="at least 1 at a time", got=str(rows), fix="use 100000")
    file = existing(path)
    if file.suffix == ".npz" or (file.suffix == ".jsonl" and is_lm_eval(file, columns)):
        raise InputError(
            str(path),
            expected="a .parquet, .csv or .jsonl table to stream",
            got=".npz" if file.suffix == ".npz" else "samples of lm-evaluation-harness",
            fix="measure it without --stream",
        )
    start, names, columns = 0, list[str](), replace(columns, id=None)

    def wants(name: str) -> bool:
        return name in columns.told or (columns.wants(name) and not _only_whole(name))

    for frame in table_batches(file, rows, wants):
        names = names or frame.columns
        try:
            yield from _batch(frame, file, columns, names, on_missing or (lambda missing: None))
        except InputError as error:
            raise InputError.inside(f"rows from {start} on, numbered from there", error) from None
        start += len(frame)
    if start == 0:
        raise InputError(str(path), expected="at least one row", got="none", fix="write the file again")


def _batch(
    frame: "pl.DataFrame", file: Path, columns: Columns, names: list[str], on_missing: Callable[[Missing], None]
) -> Iterator[Predictions]:
    """The predictions of one batch; none where all its rows are left out."""
    import polars as pl

    there = set(frame.columns)
    lacking = [name for name in names if name not in there]  # lines of JSON need not have every field
    whole, names = _numbered(frame.with_columns(pl.lit(None).alias(name) for name in lacking), names, columns)
    roles = roles_of(names, columns, str(file))
    gaps = int(gaps_of(with_numbers(whole, file, roles), roles).sum())
    if columns.missing != "refuse":
        on_missing(Missing(gaps, whole.height, columns.missing, roles.noun))
    if columns.missing == "drop" and gaps == whole.height:
        return
    yield from_table(whole, file, columns, whole.columns, few_rows=True)


def _numbered(frame: "pl.DataFrame", names: list[str], columns: Columns) -> tuple["pl.DataFrame", list[str]]:
    """With columns called after classes, prob_cat, called by their numbers; numbered ones stay as they are."""
    called = {old: new for old, new in columns.by_name.items() if old in names and new not in names}
    return frame.rename(called, strict=False), [called.get(name, name) for name in names]


def _only_whole(name: str) -> bool:
    """Columns that say nothing to sums of batches: features and names of rows."""
    return name.startswith("feature") or name in ("id", "ids", "seen", "classes", "about")


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
    check_suffix(file)
    if file.stat().st_size == 0:
        raise InputError(str(path), expected="predictions", got="an empty file", fix="write the file again")
    return file


def _from_npz(file: Path, few_rows: bool, labelled: bool, columns: Columns) -> Predictions:
    names = array_names(file)
    roles = roles_of(names, columns, str(file), labelled=labelled)
    wanted = {roles.what: roles.score, **roles.named}
    found, _ = read_npz(file, sorted(set(wanted.values())))
    arrays: dict[str, Any] = {array: found[name] for array, name in wanted.items()}
    if np.ndim(arrays.get("seen", 0.0)):
        got, fix = f"shape {np.shape(arrays['seen'])}", "leave it out, or write the share"
        raise InputError(f"{file}, array seen", expected="one number", got=got, fix=fix)
    missing = None
    if not roles.per_class and np.ndim(arrays[roles.what]) == 1:
        scores = arrays[roles.what]
        gaps = one_score(scores)
        where = f"{file}, array {roles.score}"
        missing = settle(where, roles.noun, int(gaps.sum()), len(scores), columns.missing)
        if missing is not None and columns.missing == "drop":
            arrays = {name: a[~gaps] if np.shape(a)[:1] == gaps.shape else a for name, a in arrays.items()}
        elif missing is not None:
            arrays[roles.what] = np.where(gaps, 0.0, scores)
            right = arrays.get("labels")
            if right is not None and np.shape(right) == gaps.shape and right.dtype.kind in "iufb":
                arrays["labels"] = np.where(gaps, right.dtype.type(0), right)
    return assemble(str(file), arrays, roles, columns, few_rows=few_rows, missing=missing)
