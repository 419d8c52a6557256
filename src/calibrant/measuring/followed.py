"""What a watch has read of a file: how many rows, and a hash of them, so that another file is not taken for it."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measuring.state import MOST_ROWS


@dataclass(frozen=True)
class Followed:
    """So many rows of a file have been watched; `hash` is of them alone."""

    rows: int = 0
    hash: str | None = None  # states of before this was kept have none


class Follower:
    """Gives the rows of a file that are new, once those before them are seen to be the ones watched before.

    The hash does not depend on how the rows are cut into batches.
    """

    def __init__(self, place: str, before: Followed) -> None:
        self.place, self.before = place, before
        self.rows, self._hash = 0, hashlib.sha256()

    def new(self, batch: Predictions) -> Predictions | None:
        """The rows of the next batch that were not watched before; None where all were."""
        old = min(max(self.before.rows - self.rows, 0), batch.n)
        whole = _bytes(batch)
        self._hash.update(whole[: old * (len(whole) // batch.n)])
        self.rows += old
        if old and self.rows == self.before.rows:
            self._check_hash()
        self._hash.update(whole[old * (len(whole) // batch.n) :])
        self.rows += batch.n - old
        if old == batch.n:
            return None
        return batch if old == 0 else batch.take(np.arange(old, batch.n))

    def end(self) -> Followed:
        """What has been watched now, at the end of the file."""
        if self.rows < self.before.rows:
            raise self._another(f"{self.rows:,} rows, when {self.before.rows:,} of it were watched before")
        return Followed(self.rows, self._hash.hexdigest())

    def _check_hash(self) -> None:
        if self.before.hash not in (None, self._hash.hexdigest()):
            raise self._another(f"other rows in place of the {self.before.rows:,} that were watched before")

    def _another(self, got: str) -> InputError:
        fix = "give new rows a new name, or watch them with another --state"
        return InputError(self.place, expected="a file that only grows", got=got, fix=fix)


def read_followed(files: dict[str, Any]) -> dict[str, Followed]:
    """From the state of a watch, field by field."""
    made = {}
    for name, given in files.items():
        rows, digest = (given["rows"], given["hash"]) if isinstance(given, dict) else (given, None)
        if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
            raise ValueError(f"rows read of {name:.40} are {rows!r:.40}")
        if digest is not None and type(digest) is not str:
            raise ValueError(f"hash of {name:.40} is {digest!r:.40}")
        made[name] = Followed(rows, digest)
    return made


def _bytes(p: Predictions) -> bytes:
    """Every row in as many bytes: its score, whether it was a hit, and its group."""
    rows = np.zeros((p.n, 3))
    rows[:, 0], rows[:, 1] = p.score, p.hit
    if p.groups is not None:
        names, place = np.unique(p.groups, return_inverse=True)
        short = [int.from_bytes(hashlib.sha256(str(name).encode()).digest()[:6], "big") for name in names]
        rows[:, 2] = np.array(short, dtype=np.float64)[place]
    return rows.astype("<f8").tobytes()
