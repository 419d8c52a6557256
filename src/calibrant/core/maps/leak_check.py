"""A fingerprint of rows: enough to notice that a map is measured on the rows it was fitted on.

Equal rows also come about by chance, where scores are coarse: two classes in float32, stated confidences, rounded
probabilities. So a leak must be more than chance explains, whatever the scores are like:

- Rows that occur twice in both sets together. Two such rows that coincide by chance lie in the same set at least as
  often as in different ones (2ab <= a^2 + b^2), so what lies in different sets beyond that was shared.
- The same set, row for row. All counts of all rows agree, which chance seldom does.
- Names. Where both sets have ids, rows of one name should differ as often as any two rows do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Ints
from calibrant.core.curves import native
from calibrant.core.parallel import pieces, run_pieces
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import CHUNK_ELEMENTS

VERSION = 2
LEAK = 0.02  # share of the rows from which on a leak is told
CHANCE = 3e-4  # how often each of the three looks may be wrong: together less than once in 1,000
TRUE_NAMES = 0.9  # rows of one name that must be the same, or the names are row numbers
KEPT, KEPT_IDS = 1024, 256  # at most so many distinct hashes
COLUMNS = 9  # logits of a row that are looked at

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The rows whose hash (of scores and label) begins with `level` zero bits, and how often each of them occurs.

    The same rows have the same hashes, whatever their order and the file they come from. A leak is found from about
    twelve shared rows on, among the rows that are kept: that is 5 % of any set of 250 rows or more. Of scores with
    few distinct values only the whole set is recognised, or rows with ids.
    """

    n: int
    level: int
    hashes: Hashes  # (m,) ascending and distinct
    counts: Ints  # (m,)
    ids: "Names | None" = None

    @classmethod
    def of(cls, p: Predictions) -> "Fingerprint":
        rows = _hash_rows(p)
        likely = max(0, (p.n // (8 * KEPT)).bit_length() - 1)  # of many rows only those that can be kept are sorted
        hashes, counts = np.unique(rows[_zero_bits(rows, likely)], return_counts=True)
        if likely and len(hashes) <= KEPT:  # many rows are alike
            hashes, counts = np.unique(rows, return_counts=True)
        level, count = _first(hashes, KEPT)
        return cls(p.n, level, hashes[:count], counts[:count], None if p.ids is None else Names.of(p.ids, rows))

    def share_seen(self, p: Predictions) -> float:
        """About which share of these rows is among the fingerprinted ones; 0 below 2 %, or if chance explains it."""
        rows = _hash_rows(p)
        share = self._share_of(rows, p.n)
        if self.ids is not None and p.ids is not None:
            share = max(share, self.ids.share_of(p.ids, rows))
        return share if share >= LEAK else 0.0

    def _share_of(self, rows: Hashes, n: int) -> float:
        hashes, counts = np.unique(rows[_zero_bits(rows, self.level)], return_counts=True)
        both, place = np.unique(np.concatenate([self.hashes, hashes]), return_inverse=True)
        a = np.bincount(place[: len(self.hashes)], self.counts, len(both))  # times in the fingerprint
        b = np.bincount(place[len(self.hashes) :], counts, len(both))  # times among these rows
        if n == self.n and np.array_equal(a, b) and _chance_of_equal(a) < CHANCE:
            return 1.0
        rare = a + b <= 2
        split = int((rare & (a == 1) & (b == 1)).sum())
        together = int((rare & ((a == 2) | (b == 2))).sum())
        if not split or _at_least(split, split + together, 0.5) >= CHANCE:
            return 0.0
        return float((split - together) / b[rare].sum())

    def to_dict(self) -> dict[str, Any]:
        repeated = np.flatnonzero(self.counts > 1)
        return {
            "version": VERSION,
            "n": self.n,
            "level": self.level,
            "hashes": _to_hex(self.hashes),
            "repeated": [[int(i), int(self.counts[i])] for i in repeated],
            "ids": None if self.ids is None else self.ids.to_dict(),
        }

    @classmethod
    def from_dict(cls, state: Any) -> "Fingerprint | None":
        """Read what `to_dict` wrote, else ValueError, KeyError or TypeError."""
        if state is None:
            return None
        if _whole(state["version"], 1) != VERSION:
            raise ValueError("the fingerprint is of another version")
        n, level, hashes = _whole(state["n"], 1), _whole(state["level"], 0, 63), _from_hex(state["hashes"])
        counts = np.ones(len(hashes), dtype=np.int64)
        for place, count in state["repeated"]:
            counts[_whole(place, 0, len(hashes) - 1)] = _whole(count, 2, n)
        if counts.sum() > n or not _sound(hashes, level):
            raise ValueError("the hashes of the fingerprint do not fit together")
        return cls(n, level, hashes, counts, None if state["ids"] is None else Names.from_dict(state["ids"]))


@dataclass(frozen=True, eq=False)
class Names:
    """Fingerprint of named rows: the ids whose hash begins with `level` zero bits, and the hash of the row of each."""

    level: int
    ids: Hashes  # (m,) ascending and distinct
    rows: Hashes  # (m,)

    @classmethod
    def of(cls, ids: npt.NDArray[Any], rows: Hashes, level: int | None = None) -> "Names":
        hashes, first = np.unique(_hash_ids(ids), return_index=True)
        level, count = _first(hashes, KEPT_IDS) if level is None else (level, int(_zero_bits(hashes, level).sum()))
        return cls(level, hashes[:count], rows[first[:count]])

    def share_of(self, ids: npt.NDArray[Any], rows: Hashes) -> float:
        """The share of these named rows that are the same under the same name.

        Names may be mere row numbers, which every file has: then rows of one name differ, as other rows do.
        """
        others = Names.of(ids, rows, self.level)
        _, mine, theirs = np.intersect1d(self.ids, others.ids, assume_unique=True, return_indices=True)
        same, common = int((self.rows[mine] == others.rows[theirs]).sum()), len(mine)
        in_order = np.sort(rows)
        equal = np.searchsorted(in_order, self.rows, side="right") - np.searchsorted(in_order, self.rows)
        alike = min(1.0, (equal.sum() + 1) / (len(self.rows) * len(rows)))  # of any two rows
        if same <= TRUE_NAMES * common or _at_least(same, common, alike) >= CHANCE:
            return 0.0
        return same / len(others.ids)

    def to_dict(self) -> dict[str, Any]:
        return {"level": self.level, "hashes": _to_hex(self.ids), "rows": _to_hex(self.rows)}

    @classmethod
    def from_dict(cls, state: Any) -> "Names":
        level, ids, rows = _whole(state["level"], 0, 63), _from_hex(state["hashes"]), _from_hex(state["rows"])
        if len(ids) != len(rows) or not _sound(ids, level):
            raise ValueError("the ids of the fingerprint do not fit together")
        return cls(level, ids, rows)


def _hash_rows(p: Predictions) -> Hashes:
    """One 64-bit number per row, from its label and differences of logits, that of the label too, in float32.

    Differences are the same when a row of float64 logits is shifted, and up to rounding for probabilities; every
    kind of file keeps all digits.
    """
    classes, hashes = np.unique(np.linspace(0, p.k - 1, COLUMNS).astype(np.int64)), np.empty(p.n, dtype=np.uint64)
    compiled = native.is_available() and p.score_type == "logits"

    def work(rows: slice) -> None:
        q = Predictions._from_valid(*p.block(rows), p.score_type)
        if compiled:
            hashes[rows] = native.hash_rows(q.values, q.labels, classes).view(np.uint64)
            return
        around = np.empty((len(classes) + 2, q.n))  # every column in one piece
        around[:-2] = q.logits_of(classes).T
        at_label = q.values[np.arange(q.n), q.labels][:, None]
        around[-2] = Predictions._from_valid(at_label, q.labels, q.score_type).logits[:, 0]
        around[-1] = around[0]
        with np.errstate(over="ignore"):  # logits of 1e308: infinite differences are equal differences
            steps = (around[1:] - around[:-1]).astype(np.float32)
        steps += np.float32(0.0)  # there are two zeros
        hashes[rows] = _mix([*steps.view(np.uint32), q.labels.astype(np.uint32)])

    run_pieces(work, pieces(p.n, CHUNK_ELEMENTS // COLUMNS), p.n * COLUMNS)
    return hashes


def _hash_ids(ids: npt.NDArray[Any]) -> Hashes:
    """One 64-bit number per name; 12 and "12" are the same name."""
    text = np.ascontiguousarray(ids.astype(str))
    return _mix(text.view(np.uint32).reshape(len(text), -1).T)


def _mix(columns: Sequence[npt.NDArray[np.uint32]] | npt.NDArray[np.uint32]) -> Hashes:
    """The words of each row, a word from each column, as one number; words of zero at the end change nothing."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    weight = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        for column in columns:
            word = column.astype(np.uint64)
            word *= np.uint64(0xBF58476D1CE4E5B9)
            word ^= word >> np.uint64(32)
            word *= weight
            mixed += word
            weight *= np.uint64(0xD1342543DE82EF95)
        mixed ^= mixed >> np.uint64(31)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _first(hashes: Hashes, most: int) -> tuple[int, int]:
    """The lowest level at which at most so many of these ascending hashes are kept, and how many that are."""
    if len(hashes) <= most:
        return 0, len(hashes)
    level = 65 - int(hashes[most]).bit_length()
    return level, int(_zero_bits(hashes, level).sum())


def _zero_bits(hashes: Hashes, level: int) -> npt.NDArray[np.bool_]:
    return hashes <= np.uint64(2 ** (64 - level) - 1)


def _at_least(successes: int, trials: int, rate: float) -> float:
    """The chance of so many successes or more."""
    from scipy.special import bdtrc

    return float(bdtrc(successes - 1, trials, rate)) if successes else 1.0


def _chance_of_equal(counts: npt.NDArray[Any]) -> float:
    """The chance that two sets of rows dealt at random from one pile hold every row equally often."""
    from scipy.special import gammaln

    def ways(half: Any) -> Any:  # to take half of twice as many
        return gammaln(2 * half + 1) - 2 * gammaln(half + 1)

    return float(np.exp(ways(counts).sum() - ways(counts.sum())))


def _to_hex(hashes: Hashes) -> str:
    return hashes.astype(">u8").tobytes().hex()


def _from_hex(text: Any) -> Hashes:
    if not isinstance(text, str) or len(text) % 16:
        raise ValueError("the hashes of the fingerprint are cut short")
    return np.frombuffer(bytes.fromhex(text), dtype=">u8").astype(np.uint64)


def _whole(value: Any, least: int, most: int = 2**53) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"the fingerprint says {value!r:.40}")
    return value


def _sound(hashes: Hashes, level: int) -> bool:
    """Whether hashes are ascending, distinct and of this level."""
    return bool((hashes[1:] > hashes[:-1]).all() and _zero_bits(hashes, level).all())
