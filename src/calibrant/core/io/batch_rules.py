"""Rows of a growing file that are not complete: without a label, without a group, or half-written."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.io.column_names import Columns, assign_roles

if TYPE_CHECKING:
    import polars as pl

MissingLabel = Literal["error", "drop", "wait"]
MISSING_LABEL: tuple[MissingLabel, ...] = ("error", "drop", "wait")


@dataclass(frozen=True)
class BatchRules:
    """Rules for incomplete rows of a file that is read in batches."""

    missing_label: MissingLabel = "error"  # "wait": reading ends before the first row without a label
    missing_group: str | None = None  # the group of rows that have none; None: an error
    leave_unfinished_line: bool = False  # do not read a last line without a line break


STRICT = BatchRules()


@dataclass
class BatchLog:
    """The incomplete rows of the batches that were read."""

    rows: int = 0  # with or without a label
    without_label: int = 0  # left out
    waiting_row: int | None = None  # the first row without a label, counted from 1
    unfinished_line: bool = False

    def notes(self) -> list[str]:
        """Sentences for the user."""
        notes = []
        if self.without_label:
            notes.append(f"{self.without_label:,} of {self.rows:,} rows have no label and were left out.")
        if self.waiting_row is not None:
            notes.append(f"Row {self.waiting_row:,} has no label yet: it and the rows after it wait for the next time.")
        if self.unfinished_line:
            notes.append("The last line is not finished: it is left for the next time.")
        return notes


def check_missing_label(rule: str) -> MissingLabel:
    """The rule of this name."""
    for known in MISSING_LABEL:
        if known == rule:
            return known
    raise unknown_name("missing_label", rule, MISSING_LABEL)


def complete_rows(
    frame: "pl.DataFrame",
    names: list[str],
    file: Path,
    columns: Columns,
    rules: BatchRules,
    log: BatchLog,
    start: int,
) -> "pl.DataFrame":
    """The rows of a batch that are read now; `start` is the number of rows before it."""
    import polars as pl

    log.rows += frame.height
    if rules == STRICT or frame.height == 0:
        return frame
    renamed = {old: new for old, new in columns.by_name.items() if old in names and new not in names}
    roles = assign_roles([renamed.get(name, name) for name in names], columns, str(file))
    group = roles.named.get("groups")
    if rules.missing_group is not None and group is not None and frame[group].null_count():
        filled = [rules.missing_group if value is None else str(value) for value in frame[group].to_list()]
        frame = frame.with_columns(pl.Series(group, filled))
    if "labels" not in roles.named:
        return frame
    label = frame[roles.named["labels"]]
    unlabelled = label.is_null() | (label.is_nan() if label.dtype.is_float() else label.is_null())
    if not unlabelled.any():
        return frame
    if rules.missing_label == "error":
        row, many = start + int(unlabelled.arg_true()[0]) + 1, int(unlabelled.sum())
        raise InputError(
            f"{file}, column {label.name}",
            expected="a label in every row",
            got=f"none in row {row:,} ({many:,} of these {frame.height:,} rows)",
            fix="use --missing-label drop to leave such rows out, or --missing-label wait if labels come later",
        )
    if rules.missing_label == "drop":
        log.without_label += int(unlabelled.sum())
        return frame.filter(~unlabelled)
    first = int(unlabelled.arg_true()[0])
    log.waiting_row = start + first + 1
    return frame.head(first)
