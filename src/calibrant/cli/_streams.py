"""Read the new rows of a file into a watch or into sums, and keep their state in a file."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Protocol

import typer

from calibrant.cli._app import progress
from calibrant.cli._inputs import Inputs, ReadSettings
from calibrant.core.config.bounds import at_least
from calibrant.core.errors import InputError
from calibrant.core.io.batch_rules import BatchLog, BatchRules, check_missing_label
from calibrant.core.io.formats import STDIN, file_format
from calibrant.core.io.missing import MissingCount, total_missing
from calibrant.core.lock import lock_file
from calibrant.core.predictions import Predictions
from calibrant.streaming.cursor import Cursor, NewRows, find_renamed

FORMATS = ("text", "json", "prometheus")
FormatOption = Annotated[str | None, typer.Option("--format", help="text, json or prometheus (default: text)")]
MissingLabelOption = Annotated[
    str,
    typer.Option("--missing-label", help="rows without a label: error, drop, or wait (for their label)"),
]
NO_GROUP = "(none)"  # the segment of rows that have none


@dataclass(frozen=True)
class StreamSettings(ReadSettings):
    """Settings of a stream that `--override` may change."""

    batch_rows: int = 100_000  # read at a time
    save_every: int | None = None  # rows: with --state, save after so many, not only at the end

    def __post_init__(self) -> None:
        at_least("batch_rows", self.batch_rows, 1)
        at_least("save_every", 1 if self.save_every is None else self.save_every, 1)


class StreamState(Protocol):
    """A watch, an accumulator or accumulators by key."""

    files: dict[str, Cursor]

    def update(self, p: Predictions | None) -> None: ...

    def save(self, path: str | Path) -> None: ...


@dataclass
class StreamReading:
    """The batches that were read of a file, and what a user should know about them."""

    batch_sizes: list[int] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    missing: MissingCount | None = None
    notes: list[str] = field(default_factory=list)


def lock_state(state: Path | None) -> AbstractContextManager[None]:
    """Keep other processes from using the state while it is read, updated and saved."""
    special = state is not None and state.exists() and not state.is_file()  # such as /dev/null
    return nullcontext() if state is None or special else lock_file(state)


def read_stream(
    target: StreamState,
    file: Path,
    inputs: Inputs,
    settings: StreamSettings,
    *,
    state: Path | None = None,
    missing_label: str = "error",
    npz: bool = False,
    on_update: Callable[[], None] | None = None,
) -> StreamReading:
    """Add the rows of a file that the state has not counted yet, and save the state; `on_update` follows each batch."""
    batch_rows, save_every = settings.batch_rows, settings.save_every
    if save_every is not None and state is None:
        raise InputError("save_every", expected="--state as well", got="no --state", fix="add --state state.json")
    reading, gone = StreamReading(), list[MissingCount]()
    rows_at_once = batch_rows if save_every is None else min(batch_rows, save_every)
    rules = BatchRules(
        missing_label=check_missing_label(missing_label),
        missing_group=NO_GROUP,
        leave_unfinished_line=state is not None or (npz and file_format(file) == ".jsonl"),
    )
    log = BatchLog()

    def batches(missing: list[MissingCount], log: BatchLog) -> Iterator[Predictions]:
        if npz and file_format(file) == ".npz":
            p = inputs.load(file)
            missing += [p.missing] if p.missing else []
            yield p
        else:
            yield from inputs.batches(file, rows_at_once, missing.append, rules, log)

    name = None if str(file) == STDIN else str(file.resolve())  # rows of standard input are always new
    if name is not None and name not in target.files and (old := find_renamed(target.files, batches([], BatchLog()))):
        target.files[name] = target.files.pop(old)
        note = f"{file.name} begins with the {target.files[name].rows:,} rows that were read as {Path(old).name}"
        reading.notes.append(f"{note}: only the rows after them are new.")
    new_rows = NewRows(str(file), Cursor() if name is None else target.files.get(name, Cursor()))
    unsaved = 0
    with progress("rows read", ["stream"]) as steps:
        for _, step in steps:
            for batch in batches(gone, log):
                added = new_rows.select(batch)
                target.update(added)
                if on_update is not None:
                    on_update()
                reading.batch_sizes.append(batch.n)
                reading.groups |= set() if batch.groups is None else set(map(str, batch.groups))
                unsaved += 0 if added is None else added.n
                if state is not None and save_every is not None and unsaved >= save_every:
                    _save(target, name, new_rows.cursor, state)
                    unsaved = 0
                step(batch.n)
    reading.missing = total_missing(gone)
    reading.notes += log.notes()
    if not reading.batch_sizes and log.without_label == log.rows > 0:
        fix = "name the column of the labels, or use --missing-label wait if they come later"
        raise InputError(str(file), expected="a label in at least one row", got=f"none in {log.rows:,} rows", fix=fix)
    if not reading.batch_sizes and log.waiting_row is None and not log.unfinished_line:
        rows = reading.missing.of if reading.missing else 0
        fix = "name the column of the scores with --score-column or --confidence-column"
        raise InputError(str(file), expected="a score in at least one row", got=f"none in {rows:,} rows", fix=fix)
    end = new_rows.end()
    if state is not None:
        _save(target, name, end, state)
    return reading


def _save(target: StreamState, name: str | None, cursor: Cursor, state: Path) -> None:
    if name is not None:
        target.files[name] = cursor
    target.save(state)
