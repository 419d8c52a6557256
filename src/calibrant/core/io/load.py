"""Read files of predictions: npz, Parquet, CSV, JSONL and logs of evaluation tools. No code of a file is run."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.io.batch_rules import STRICT, BatchLog, BatchRules, complete_rows
from calibrant.core.io.column_names import STANDARD_NAMES, ColumnRoles, Columns, LabelRule, assign_roles
from calibrant.core.io.columns import arrays_of, parse_numbers, resolve_missing, rows_without_score
from calibrant.core.io.folders import read_folder
from calibrant.core.io.formats import display_name, existing, file_format, file_parts, plain_file
from calibrant.core.io.inspect_logs import is_inspect_log, read_inspect_log
from calibrant.core.io.lm_eval import is_lm_eval, read_lm_eval
from calibrant.core.io.missing import MissingCount, apply_policy
from calibrant.core.io.npz import open_npz
from calibrant.core.io.score_table import ScoreTable, build_table
from calibrant.core.io.tables import column_names, read_wanted, table_batches

if TYPE_CHECKING:
    import polars as pl


def load_scores(path: str | Path, columns: Columns = STANDARD_NAMES, *, labels: LabelRule = "required") -> ScoreTable:
    """The scores of a file, of a folder of logs, or of standard input ("-").

    With labels="optional" a file may have no labels.
    """
    if (folder := Path(path)).is_dir():
        return read_folder(folder, columns)
    if is_inspect_log(Path(path)):
        return read_inspect_log(existing(path, any_format=True), columns)
    with plain_file(path) as file:
        return replace(_read(file, columns, labels), place=display_name(path))


def _read(file: Path, columns: Columns, labels: LabelRule) -> ScoreTable:
    if file_format(file) == ".npz":
        return _from_npz(file, columns, labels)
    if file_format(file) == ".jsonl" and is_lm_eval(file, columns):
        return read_lm_eval(file, columns)
    frame, names = read_wanted(file, columns.wants)
    return from_frame(frame, file, columns, names, labels=labels)


def from_frame(
    frame: "pl.DataFrame", place: Path | str, columns: Columns, names: list[str], *, labels: LabelRule = "required"
) -> ScoreTable:
    """The scores of a polars frame; `names` are those of all columns of the file, also of those not read."""
    if names and frame.height == 0:
        raise InputError(
            str(place), expected="at least two rows", got="a header and no rows", fix="write the file again"
        )
    frame, names = _number_classes(frame, names, columns)
    roles = assign_roles(names, columns, str(place), labels=labels)
    rows, missing = resolve_missing(parse_numbers(frame, place, roles), place, roles, columns.missing)
    return build_table(str(place), arrays_of(rows, place, roles), roles, columns, missing=missing)


def load_batches(
    path: str | Path,
    rows: int,
    columns: Columns = STANDARD_NAMES,
    *,
    on_missing: Callable[[MissingCount], None] | None = None,
    rules: BatchRules = STRICT,
    log: BatchLog | None = None,
) -> Iterator[ScoreTable]:
    """The scores of a table of any length, at most `rows` rows at a time, in constant memory.

    `on_missing` is called for every batch with the number of its rows that have no score; a batch without any score is
    left out. `rules` say what is done with rows that are incomplete, and `log` counts them.
    """
    log = BatchLog() if log is None else log
    if rows < 1:
        raise InputError("rows", expected="at least 1 at a time", got=str(rows), fix="use 100000")
    start, names, columns = 0, list[str](), replace(columns, id=None)

    def wants(name: str) -> bool:
        return name in columns.chosen or (columns.wants(name) and not _is_unused_in_batches(name))

    for file in file_parts(path):
        try:
            _check_streamable(file, columns)
            for frame in table_batches(file, rows, wants, log if rules.leave_unfinished_line else None):
                if not names and any(name not in (None, "none", *frame.columns) for name in columns.chosen):
                    assign_roles(column_names(file), columns, str(file))  # its error lists the columns of the file
                names = names or frame.columns
                first_row = f"rows from {start} on, numbered from there"
                try:
                    complete = complete_rows(_with_columns(frame, names), names, file, columns, rules, log, start)
                    table = _batch(complete, file, columns, names, on_missing or (lambda missing: None))
                except InputError as error:
                    raise InputError.inside(first_row, error) from None
                if table is not None:
                    yield replace(table, place=f"{first_row}: {display_name(path)}")
                start += len(frame)
                if log.waiting_row is not None:
                    return
        except InputError as error:  # names the file that the user knows
            raise InputError.with_name(error, str(file), display_name(path)) from None
    if start == 0:
        raise InputError(display_name(path), expected="at least one row", got="none", fix="write the file again")


def _check_streamable(file: Path, columns: Columns) -> None:
    if file_format(file) == ".npz" or (file_format(file) == ".jsonl" and is_lm_eval(file, columns)):
        raise InputError(
            str(file),
            expected="a .parquet, .csv or .jsonl table to stream",
            got=".npz" if file_format(file) == ".npz" else "samples of lm-evaluation-harness",
            fix="give the whole file to a command that reads all rows at once: measure without --stream, or report",
        )


def _batch(
    frame: "pl.DataFrame", file: Path, columns: Columns, names: list[str], on_missing: Callable[[MissingCount], None]
) -> ScoreTable | None:
    """The scores of one batch; None where all its rows are left out."""
    if frame.height == 0:
        return None
    whole, names = _number_classes(frame, names, columns)
    roles = assign_roles(names, columns, str(file))
    if columns.missing != "error":
        gaps = int(rows_without_score(parse_numbers(whole, file, roles), roles).sum())
        on_missing(MissingCount(gaps, whole.height, columns.missing, roles.noun))
        if columns.missing == "drop" and gaps == whole.height:
            return None
    return from_frame(whole, file, columns, whole.columns)


def _with_columns(frame: "pl.DataFrame", names: list[str]) -> "pl.DataFrame":
    """The frame with all of these columns: lines of JSON need not have every field."""
    import polars as pl

    present = set(frame.columns)
    return frame.with_columns(pl.lit(None).alias(name) for name in names if name not in present)


def _number_classes(frame: "pl.DataFrame", names: list[str], columns: Columns) -> tuple["pl.DataFrame", list[str]]:
    """Rename columns named after classes, such as prob_cat, to the number of the class; numbered ones stay."""
    renamed = {old: new for old, new in columns.by_name.items() if old in names and new not in names}
    return frame.rename(renamed, strict=False), [renamed.get(name, name) for name in names]


def _is_unused_in_batches(name: str) -> bool:
    """Columns that sums over batches do not use: features and names of rows."""
    return name.startswith("feature") or name in ("id", "ids", "seen", "classes", "about")


def _from_npz(file: Path, columns: Columns, labels: LabelRule) -> ScoreTable:
    with open_npz(file) as archive:
        roles = assign_roles(archive.names, columns, str(file), labels=labels)
        wanted = {roles.content: roles.score, **roles.named}
        read = archive.read(sorted(set(wanted.values())))
    arrays: dict[str, Any] = {array: read[name] for array, name in wanted.items()}
    if np.ndim(arrays.get("seen", 0.0)):
        got, fix = f"shape {np.shape(arrays['seen'])}", "leave it out, or write the share"
        raise InputError(f"{file}, array seen", expected="one number", got=got, fix=fix)
    arrays, missing = _resolve_missing(file, arrays, roles, columns)
    return build_table(str(file), arrays, roles, columns, missing=missing)


def _resolve_missing(
    file: Path, arrays: dict[str, Any], roles: ColumnRoles, columns: Columns
) -> tuple[dict[str, Any], MissingCount | None]:
    """Drop rows whose one score is NaN, or set it to 0 where they count as wrong."""
    scores = arrays[roles.content]
    if roles.per_class or scores.ndim != 1 or scores.dtype.kind != "f":
        return arrays, None
    gaps = np.isnan(scores)
    where = f"{file}, array {roles.score}"
    missing = apply_policy(where, roles.noun, int(gaps.sum()), len(scores), columns.missing)
    if missing is None:
        return arrays, None
    if columns.missing == "drop":
        return {name: a[~gaps] if np.shape(a)[:1] == gaps.shape else a for name, a in arrays.items()}, missing
    arrays[roles.content] = np.where(gaps, 0.0, scores)
    labels = arrays.get("labels")
    if labels is not None and np.shape(labels) == gaps.shape and labels.dtype.kind in "iufb":
        arrays["labels"] = np.where(gaps, labels.dtype.type(0), labels)
    return arrays, missing
