"""Store of finished jobs: rows in Parquet parts, files in folders named by the job's key.

```text
jobs/
  rows/KIND/part-*.parquet      written whole and renamed
  journal/DRIVER/jobs.jsonl     jobs finished since the last part: a line each, lost only if it was not whole
  files/KEY/                    what a job left for others, renamed into place when it was finished
  work/KEY/                     what a job is writing now; a resumed job finds it again
```

Several studies share one store, and so do several drivers: each has a journal of its own.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from calibrant.core.config.convert import from_json
from calibrant.core.errors import DamagedFileError, InputError
from calibrant.core.files import fault_point, write_text, write_whole
from calibrant.core.io.tables import read_table
from calibrant.core.json import parse_json
from calibrant.studying.job import Outcome
from calibrant.studying.job_kinds import Row

if TYPE_CHECKING:
    import polars as pl

PART_JOBS = 2000  # jobs in a part
NAME = re.compile(r"\w+")  # a kind or a key: parts of names of files
PART_SECONDS = 600.0  # after which a journal becomes a part, so that people can keep what there is


class Store:
    """Rows and files of finished jobs, by key."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def files(self, key: str) -> Path:
        return self.folder / "files" / key

    def work(self, key: str) -> Path:
        return self.folder / "work" / key

    def finish_files(self, key: str) -> None:
        """Rename the folder of a job, so that all its files are visible at once."""
        work, files = self.work(key), self.files(key)
        if work.exists():
            files.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(files, ignore_errors=True)
            os.replace(work, files)

    # -- rows -----------------------------------------------------------------------------------

    def rows(self, kind: str, keys: Iterable[str] | None = None) -> "pl.DataFrame":
        """Rows of finished jobs of a kind, with their key in the column `job`; a job counts once."""
        import polars as pl

        wanted = None if keys is None else set(keys)
        tables = [_part(file) for file in self._parts(kind)]
        lately = [o for o in self._journals() if o.kind == kind and not o.failed]
        tables += [_table(lately, self.folder / "journal")] if lately else []
        if not tables:
            return pl.DataFrame({"job": []}, schema={"job": pl.String})
        parts, seen = [], set[str]()
        for table in tables:  # a job that is in a part and in a journal is the same job
            new = set(table["job"].unique()) - seen
            new = new if wanted is None else new & wanted
            parts.append(table.filter(pl.col("job").is_in(list(new))))
            seen |= new
        try:
            return pl.concat(parts, how="diagonal_relaxed")
        except pl.exceptions.PolarsError as error:
            raise _damage_error(self.folder / "rows" / kind, "parts that do not fit together", error) from error

    def kinds(self) -> list[str]:
        """The kinds of finished jobs."""
        return sorted({file.parent.name for file in self._parts("*")} | {o.kind for o in self._journals()})

    def copy_rows(self, kind: str, keys: Mapping[str, str]) -> None:
        """Copy the rows of finished jobs to other keys, as one part."""
        import polars as pl

        rows = self.rows(kind, keys).with_columns(pl.col("job").replace_strict(keys, return_dtype=pl.String))
        place = self.folder / "rows" / kind / f"part-{min(keys.values())}-{len(keys)}.parquet"
        write_whole(place, rows.write_parquet)

    def done(self) -> set[str]:
        """Keys of all finished jobs."""
        keys = {o.key for o in self._journals() if not o.failed}
        for file in self._parts("*"):
            keys |= set(_part(file, ["job"])["job"].unique())
        return keys

    def failures(self) -> dict[str, Outcome]:
        """The last failure of every job that has not been finished since."""
        done = self.done()
        failed = [o for file in self.folder.glob("failed/*.jsonl") for o in _outcomes(file)]
        failed += [o for o in self._journals() if o.failed]
        return {o.key: o for o in failed if o.key not in done}

    def forget_failures(self) -> None:
        for file in self.folder.glob("failed/*.jsonl"):
            file.unlink()

    def _parts(self, kind: str) -> list[Path]:
        return sorted(self.folder.glob(f"rows/{kind}/part-*.parquet"))

    def _journals(self) -> Iterator[Outcome]:
        for file in sorted(self.folder.glob("journal/*/jobs.jsonl")):
            yield from _outcomes(file, may_be_cut=True)


class Journal:
    """Journal of one driver: one line per finished job, turned into a Parquet part now and then."""

    def __init__(self, store: Store, driver: str) -> None:
        self.store, self.file = store, store.folder / "journal" / driver / "jobs.jsonl"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.compact()
        self.stream: IO[str] = self.file.open("a")
        self.count, self.began, self.full = 0, time.monotonic(), False

    def add(self, outcome: Outcome) -> None:
        try:
            self.stream.write(json.dumps(vars(outcome), allow_nan=False) + "\n")
            self.stream.flush()  # a killed driver has lost nothing
        except OSError as error:
            self.full = True
            raise InputError(
                str(self.file),
                expected="room for the rows of finished jobs",
                got=error.strerror or str(error),
                fix="make room or move the store; finished jobs are kept, and the same command continues",
            ) from None
        fault_point()
        self.count += 1
        if self.count >= PART_JOBS or time.monotonic() - self.began > PART_SECONDS:
            self.stream.close()
            self.compact()
            self.stream, self.count, self.began = self.file.open("a"), 0, time.monotonic()

    def close(self) -> None:
        with suppress(OSError):  # of what could not be written, which was said
            self.stream.close()
        if not self.full:
            self.compact()

    def compact(self) -> None:
        """Write the journal as parts; killed in between, its jobs are in both and count once."""
        if not self.file.exists():
            return
        outcomes = _outcomes(self.file, may_be_cut=True)
        for kind in sorted({o.kind for o in outcomes if not o.failed}):
            of_kind = [o for o in outcomes if o.kind == kind and not o.failed]
            table, folder = _table(of_kind, self.file), self.store.folder / "rows" / kind
            write_whole(folder / f"part-{of_kind[0].key}-{len(of_kind)}.parquet", table.write_parquet)
        failed = [o for o in outcomes if o.failed]
        if failed:
            text = "".join(json.dumps(vars(o)) + "\n" for o in failed)
            place = self.store.folder / "failed" / f"{failed[0].key}-{len(failed)}.jsonl"
            write_text(place, text)
        self.file.unlink()


def _outcomes(file: Path, *, may_be_cut: bool = False) -> list[Outcome]:
    """The lines of a journal, or of a file of failures; the last one of a journal may have been cut by a kill."""
    try:
        lines = file.read_bytes().removesuffix(b"\n").split(b"\n")
    except FileNotFoundError:  # made into a part while we looked
        return []
    outcomes = []
    for number, line in enumerate(lines, 1):
        try:
            state = parse_json(line.decode("utf-8"))
        except ValueError as error:
            if number == len(lines) and (may_be_cut or not line):
                break
            raise _damage_error(file, f"line {number} that is JSON", error) from error
        try:
            outcomes.append(_outcome(state))
        except ValueError as error:
            why = error.problem if isinstance(error, InputError) else error
            raise _damage_error(file, f"line {number} that tells of a job", why) from error
    return outcomes


def _outcome(state: Any) -> Outcome:
    """Parse one line of a journal, field by field, without trusting it."""
    outcome = from_json(Outcome, state)
    for name in (outcome.key, outcome.kind):
        if not NAME.fullmatch(name):
            raise ValueError(f"the name {name!r:.40}")
    for row in outcome.rows:
        if not isinstance(row, dict) or "job" in row or not all(map(_is_plain, row.values())):
            raise ValueError(f"the row {row!r:.40}")
    return outcome


def _is_plain(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or isinstance(value, str | float)


def _table(outcomes: list[Outcome], place: Path) -> "pl.DataFrame":
    """Rows with the key and the seconds of their job; a job without rows has one that says so."""
    import polars as pl

    rows: list[Row] = []
    for o in outcomes:
        rows += [{"job": o.key, "seconds": o.seconds, **row} for row in o.rows or [{}]]
    try:
        return pl.DataFrame(rows, infer_schema_length=None)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise _damage_error(place, "rows of one kind", error) from error


def _part(file: Path, columns: Sequence[str] | None = None) -> "pl.DataFrame":
    """Read a part, or some of its columns, and check it: numbers and words, and the key of a job in every row."""
    import polars as pl

    try:
        table = read_table(file, columns)
    except InputError as error:
        raise _damage_error(file, "a whole part of the rows", error) from error
    plain = all(kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null) for kind in table.dtypes)
    if not plain or table.schema.get("job") != pl.String or table["job"].has_nulls():
        raise _damage_error(file, "rows of jobs", ", ".join(f"{name} ({kind})" for name, kind in table.schema.items()))
    return table


def _damage_error(file: Path, expected: str, got: object) -> InputError:
    return DamagedFileError.from_reason(file, expected, got, "delete it, and what was in it is computed again")
