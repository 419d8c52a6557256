"""Cursors of files: the number of rows read, and a hash of them by which a file is recognised."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.config.convert import Count
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions

FEWEST_TO_RECOGNISE = 20  # rows: two files may begin with the same few rows by chance


@dataclass(frozen=True)
class Cursor:
    """Position in a file: `rows` rows have been read, and `hash` is the hash of these rows."""

    rows: Count = 0
    hash: str = ""  # of no rows


class NewRows:
    """Select the new rows of a file, after checking that it begins with the rows that were read before.

    The hash does not depend on how the rows are cut into batches.
    """

    def __init__(self, place: str, before: Cursor) -> None:
        self.place, self.before = place, before
        self.rows, self._hash = 0, hashlib.sha256()

    def select(self, batch: Predictions) -> Predictions | None:
        """The rows of the next batch that were not read before; None where all were."""
        old = min(max(self.before.rows - self.rows, 0), batch.n)
        self._add(batch, 0, old)
        if old and self.rows == self.before.rows and self.before.hash != self._hash.hexdigest():
            raise self._change_error(f"other rows in place of the {self.before.rows:,} that were read before")
        self._add(batch, old, batch.n)
        if old == batch.n:
            return None
        return batch if old == 0 else batch.take(np.arange(old, batch.n))

    @property
    def cursor(self) -> Cursor:
        """The cursor after the rows read now; never before the previous one."""
        return Cursor(self.rows, self._hash.hexdigest()) if self.rows >= self.before.rows else self.before

    def end(self) -> Cursor:
        """The cursor at the end of the file, which must not have become shorter."""
        if self.rows < self.before.rows:
            raise self._change_error(f"{self.rows:,} rows, when {self.before.rows:,} of it were read before")
        return self.cursor

    def _add(self, batch: Predictions, first: int, last: int) -> None:
        self._hash.update(_row_bytes(batch)[first:last].tobytes())
        self.rows += last - first

    def _change_error(self, got: str) -> InputError:
        fix = (
            "if the file was rotated, read the old rows first, by their new name; "
            "else give new rows a new name, or use another --state"
        )
        return InputError(self.place, expected="a file that only grows", got=got, fix=fix)


def find_renamed(files: Mapping[str, Cursor], batches: Iterable[Predictions]) -> str | None:
    """The name under which the first rows of a file were read before; None where they are new.

    Only files of which at least FEWEST_TO_RECOGNISE rows were read are recognised.
    """
    known = {cursor: name for name, cursor in files.items() if cursor.rows >= FEWEST_TO_RECOGNISE}
    lengths = sorted({cursor.rows for cursor in known})
    name = None
    for cursor in _prefixes(batches, lengths):
        name = known.get(cursor, name)
        if cursor.rows == lengths[-1]:
            break
    return name


def merge_cursors(a: Mapping[str, Cursor], b: Mapping[str, Cursor]) -> dict[str, Cursor]:
    """The cursors of two states; of a file that both have read, the one that is further."""
    return {
        name: max(a.get(name, Cursor()), b.get(name, Cursor()), key=lambda cursor: cursor.rows) for name in {**a, **b}
    }


def _prefixes(batches: Iterable[Predictions], lengths: list[int]) -> Iterator[Cursor]:
    """The cursor after n rows, for each n of these lengths that the file has."""
    rows, digest = 0, hashlib.sha256()
    for batch in batches if lengths else ():
        content = _row_bytes(batch)
        first = 0
        for length in [length for length in lengths if rows < length <= rows + batch.n]:
            digest.update(content[first : length - rows].tobytes())
            first = length - rows
            yield Cursor(length, digest.hexdigest())
        digest.update(content[first:].tobytes())
        rows += batch.n


def _row_bytes(p: Predictions) -> np.ndarray[Any, Any]:
    """Three numbers for every row: its score, its outcome and its group."""
    rows = np.zeros((p.n, 3), dtype="<f8")
    rows[:, 0], rows[:, 1] = p.score, p.outcome
    if p.groups is not None:
        names, place = np.unique(p.groups, return_inverse=True)
        short = [int.from_bytes(hashlib.sha256(str(name).encode()).digest()[:6], "big") for name in names]
        rows[:, 2] = np.array(short, dtype=np.float64)[place]
    return rows
