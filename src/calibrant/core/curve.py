"""The sorted calibration curve: sort once, prefix-sum once; every binning is two searches in it.

`Curve` holds one sequence of (score, hit) pairs, for instance top-label confidence and correctness.
`ClassCurves` holds one such curve per class, built from sorted values alone (no argsort).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.errors import InputError

MOST_BINS = 100_000
MOST_CELLS = 20_000_000  # bins x classes

Scheme = Literal["width", "mass"]
Closed = Literal["right", "left"]
Mass = Literal["sort", "midpoint", "interp", "stride"]


@dataclass(frozen=True)
class Bins:
    """Sums per bin, the last axis being the bins; `n` counts all samples (or their weight), binned or dropped."""

    count: Array
    score_sum: Array
    hit_sum: Array
    n: float
    effective: float = 1.0  # rows that a unit of weight is worth

    @cached_property
    def share(self) -> Array:
        return self.count / self.n

    @cached_property
    def confidence(self) -> Array:
        """Mean score per bin; 0 in an empty bin, which has no weight anywhere."""
        return np.divide(self.score_sum, self.count, out=np.zeros_like(self.score_sum), where=self.count > 0)

    @cached_property
    def accuracy(self) -> Array:
        """Share of hits per bin; 0 in an empty bin."""
        return np.divide(self.hit_sum, self.count, out=np.zeros_like(self.hit_sum), where=self.count > 0)

    @property
    def gap(self) -> Array:
        """Confidence minus accuracy: positive where the scores promise too much."""
        return self.confidence - self.accuracy

    @property
    def ece(self) -> float:
        """Distance of scores from hits, averaged over the bins by their size."""
        return float(np.abs(self.score_sum - self.hit_sum).sum() / self.n)

    @property
    def filled(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        return self.count > 0


@dataclass(frozen=True, eq=False)
class Curve:
    """Scores in ascending order and their hits (1 or 0), with the prefix sums of both.

    >>> curve = Curve.sort(np.array([0.9, 0.6, 0.7]), np.array([1.0, 0.0, 1.0]))
    >>> curve.bins(2).count  # nothing in (0, 0.5], all three in (0.5, 1]
    array([0., 3.])
    """

    scores: Array  # (n,) ascending
    hits: Array  # (n,) 1.0 where the event happened
    order: Ints  # (n,) original row of each sorted sample

    @classmethod
    def sort(cls, scores: Array, hits: Array) -> "Curve":
        order = np.argsort(scores)
        return cls(scores[order], hits[order].astype(np.float64), order)

    @property
    def n(self) -> int:
        return len(self.scores)

    @property
    def total(self) -> float:
        """The weight of all rows: their number, where they have none."""
        return float(self.n)

    @property
    def effective(self) -> float:
        """Rows that a unit of weight is worth."""
        return 1.0

    @cached_property
    def weights(self) -> Array:
        return np.ones(self.n)

    @cached_property
    def weight_sum(self) -> Array:
        return np.arange(self.n + 1.0)  # (n + 1,)

    @cached_property
    def score_sum(self) -> Array:
        return prefix_sums(self.scores)  # (n + 1,)

    @cached_property
    def hit_sum(self) -> Array:
        return prefix_sums(self.hits)  # (n + 1,)

    @cached_property
    def group_ends(self) -> Ints:
        """Positions just behind each group of equal scores: where a threshold can stand."""
        return np.append(np.flatnonzero(np.diff(self.scores)) + 1, self.n)

    @cached_property
    def groups(self) -> tuple[Array, Array]:
        """Hits and misses in each group of equal scores, ascending."""
        hits = np.diff(self.hit_sum[self.group_ends], prepend=0.0)
        return hits, np.diff(self.weight_sum[self.group_ends], prepend=0.0) - hits

    def repeat(self, counts: Ints) -> "Curve":
        """The curve of a resample in which row i of the data occurs counts[i] times. No sort needed."""
        c = counts[self.order]
        return Curve(np.repeat(self.scores, c), np.repeat(self.hits, c), np.arange(c.sum()))

    def with_hits(self, hits: Array) -> "Curve":
        """The same scores with other hits, given in sorted order."""
        return Curve(self.scores, hits, self.order)

    def bins(self, count: int, scheme: Scheme = "width", *, closed: Closed = "right", em: Mass = "sort") -> Bins:
        check_bins(count)
        cuts = _cuts(self.scores, count, scheme, closed, em)
        hits = self._hits_below(cuts) if scheme == "mass" and em == "sort" else self.hit_sum[cuts]
        return Bins(np.diff(cuts).astype(np.float64), np.diff(self.score_sum[cuts]), np.diff(hits), self.n)

    def bin_of(self, count: int, scheme: Scheme = "width", *, closed: Closed = "right", em: Mass = "sort") -> Ints:
        """The bin of each sorted sample; -1 where it is in none."""
        cuts = _cuts(self.scores, count, scheme, closed, em)
        found = np.full(self.n, -1)
        found[cuts[0] : cuts[-1]] = np.repeat(np.arange(count), np.diff(cuts))
        return found

    def _hits_below(self, cuts: Ints) -> Array:
        """Hits among the first `cut` samples; a group of ties split by a cut shares its hits evenly."""
        ends = np.concatenate([[0], self.group_ends])
        at = np.searchsorted(ends, cuts, side="left")  # the first group end at or behind the cut
        high = ends[at]
        low = ends[np.maximum(at - 1, 0)]
        inside = np.divide(cuts - low, high - low, out=np.ones(len(cuts)), where=high > low)
        return np.asarray(self.hit_sum[low] + inside * (self.hit_sum[high] - self.hit_sum[low]))


@dataclass(frozen=True, eq=False)
class ClassCurves:
    """One curve per class: sorted scores, their prefix sums, and the sorted scores of the positives."""

    scores: Array  # (b, n) each row ascending
    positives: list[Array]  # b sorted arrays: scores of the rows whose label is the class

    @cached_property
    def score_sum(self) -> Array:
        b, n = self.scores.shape
        sums = np.empty((b, n + 1))  # (b, n + 1)
        sums[:, 0] = 0.0
        np.cumsum(self.scores, axis=1, out=sums[:, 1:])
        return sums

    @property
    def empty(self) -> bool:
        return not self.scores.size

    def groups(self) -> Iterator[tuple[Array, Array, Array]]:
        """Of each class: its distinct scores, how many rows have each, and how many of these are hits."""
        for scores, positives in zip(self.scores, self.positives, strict=True):
            ends = np.append(np.flatnonzero(np.diff(scores)) + 1, len(scores))
            x = scores[ends - 1]
            hits = np.diff(np.searchsorted(positives, x, side="right"), prepend=0)
            yield x, np.diff(ends, prepend=0).astype(np.float64), hits.astype(np.float64)

    def above(self, threshold: float) -> Iterator["ClassCurves"]:
        """Of each class alone, the probabilities above a threshold."""
        for scores, positives in zip(self.scores, self.positives, strict=True):
            kept = scores[scores.searchsorted(threshold, side="right") :]
            yield ClassCurves(kept[None], [positives[positives.searchsorted(threshold, side="right") :]])

    def bins(self, count: int, scheme: Scheme = "width", *, closed: Closed = "right", em: Mass = "sort") -> Bins:
        return self.many_bins((count,), scheme, closed=closed, em=em)[0]

    def many_bins(
        self, counts: Sequence[int], scheme: Scheme = "width", *, closed: Closed = "right", em: Mass = "sort"
    ) -> list[Bins]:
        """Bins of several counts, from one search in each class."""
        if scheme == "mass" and em == "sort":
            return [self._chunks(count) for count in counts]
        b, n = self.scores.shape
        edges, columns = self._joined_edges(counts, scheme, em)
        known = self._known_cuts(edges, columns, counts, scheme, closed, em)
        cuts, hits = np.empty((b, edges.shape[-1]), dtype=np.int64), np.empty((b, edges.shape[-1]))
        for row, positives in enumerate(self.positives):
            at = edges if edges.ndim == 1 else edges[row]
            cuts[row] = known[1] if known[0][row] else self.scores[row].searchsorted(at, side=closed)
            hits[row] = positives.searchsorted(at, side=closed)
        if em != "interp" or scheme == "width":  # outer bins take all up to the ends; interp drops its smallest value
            first, last = [place[0] for place in columns], [place[-1] for place in columns]
            cuts[:, first], cuts[:, last] = 0, n
            hits[:, first], hits[:, last] = 0, np.array([len(positives) for positives in self.positives])[:, None]
        sums = np.take_along_axis(self.score_sum, cuts, axis=1)
        return [_differences(cuts[:, place], sums[:, place], hits[:, place], n) for place in columns]

    def _joined_edges(self, counts: Sequence[int], scheme: Scheme, em: Mass) -> tuple[Array, list[Ints]]:
        """The edges of all counts, (edges,) or (b, edges), and where those of each count stand."""
        each = [_edges(self.scores, count, scheme, em) for count in counts]
        whole = np.concatenate([one for one in each if one is not None], axis=-1)
        places = np.arange(whole.shape[-1])
        if scheme == "width":  # every edge of 5 bins is one of 10 as well
            whole, places = np.unique(whole, return_inverse=True)
        return whole, np.split(places, np.cumsum([count + 1 for count in counts])[:-1])

    def inner_edges(self, count: int, scheme: Scheme, em: Mass) -> Array:
        """(b, count - 1): what parts the bins of each class; bins made by position keep their ties together here."""
        b, n = self.scores.shape
        edges = _edges(self.scores, count, scheme, em)
        if edges is None:
            return self.scores[:, np.maximum(equal_chunks(n, count)[1:-1] - 1, 0)]
        return np.broadcast_to(edges[..., 1:-1], (b, count - 1))

    def _known_cuts(
        self, edges: Array, columns: list[Ints], counts: Sequence[int], scheme: Scheme, closed: Closed, em: Mass
    ) -> "tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]], Ints]":
        """Rows whose cuts need no search: edges midway between two chunks cut there, unless ties or rounding forbid."""
        b, n = self.scores.shape
        known: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = np.zeros(b, dtype=bool)
        chunks: Ints = np.empty(0, dtype=np.int64)
        if scheme == "mass" and em == "midpoint" and closed == "right" and max(counts) <= n:
            chunks = np.concatenate([equal_chunks(n, count) for count in counts])
            inner = np.concatenate([place[1:-1] for place in columns])
            known = np.asarray((edges[:, inner] < self.scores[:, chunks[inner]]).all(axis=1))
        return known, chunks

    def _chunks(self, count: int) -> Bins:
        """Bins by position alone."""
        b, n = self.scores.shape
        cuts = np.broadcast_to(equal_chunks(n, count), (b, count + 1))
        rows = zip(self.positives, self.scores, cuts, strict=True)
        hits = np.stack([_positives_below(positives, scores, at) for positives, scores, at in rows])
        return _differences(cuts, np.take_along_axis(self.score_sum, cuts, axis=1), hits, n)


def check_bins(count: int, classes: int = 1) -> None:
    """Refuse so many bins that hardly one holds two rows, before they fill the memory."""
    most = min(MOST_BINS, MOST_CELLS // classes)
    if not 1 <= count <= most:
        expected = f"1 to {most:,}" + (f" (for {classes:,} classes)" if most < MOST_BINS else "")
        fix = "use fewer: of finer bins hardly one holds two rows, and all of them take memory"
        raise InputError("bins", expected=expected, got=f"{count:,}", fix=fix if count > most else "use 15")


def equal_width_edges(count: int) -> Array:
    """m / count, correctly rounded, so that edges of 5 bins are also edges of 10."""
    return np.arange(count + 1) / count


def prefix_sums(values: Array) -> Array:
    """The sum of the first i values, (n + 1,)."""
    sums = np.empty(len(values) + 1)
    sums[0] = 0.0
    np.cumsum(values, out=sums[1:])
    return sums


def equal_chunks(n: int, count: int) -> Ints:
    """Where `count` nearly equal chunks begin and end; the first n mod count get one more.

    >>> equal_chunks(7, 3)
    array([0, 3, 5, 7])
    """
    size, more = divmod(n, count)
    index = np.arange(count + 1)
    return index * size + np.minimum(index, more)


def _edges(scores: Array, count: int, scheme: Scheme, em: Mass) -> Array | None:
    """Bin edges along the last axis, or None where bins are made by position alone."""
    if scheme == "width":
        return equal_width_edges(count)
    n = scores.shape[-1]
    if em == "sort":
        return None
    if em == "interp":
        place = np.linspace(0, n, count + 1)
        low = np.minimum(place.astype(np.int64), n - 1)
        rise = scores[..., np.minimum(low + 1, n - 1)] - scores[..., low]
        return np.asarray(scores[..., low] + (place - low) * rise)
    if em == "midpoint":
        at = np.minimum(equal_chunks(n, count)[1:-1], n - 1)
        inner = (scores[..., np.maximum(at - 1, 0)] + scores[..., at]) / 2
    else:
        inner = scores[..., np.arange(1, count) * (n // count)]
    ends = np.broadcast_to([0.0, 1.0], (*scores.shape[:-1], 2))
    return np.concatenate([ends[..., :1], inner, ends[..., 1:]], axis=-1)


def _cuts(scores: Array, count: int, scheme: Scheme, closed: Closed, em: Mass) -> Ints:
    edges = _edges(scores, count, scheme, em)
    n = len(scores)
    if edges is None:
        return equal_chunks(n, count)
    cuts = np.searchsorted(scores, edges, side=closed)
    if em != "interp" or scheme == "width":  # outer bins take all up to the ends; interp drops its smallest value
        cuts[0], cuts[-1] = 0, n
    return cuts


def _differences(cuts: Ints, sums: Array, hits: Array, n: int) -> Bins:
    """Bins (b, bins) from running numbers at their ends."""
    return Bins(np.diff(cuts, axis=1).astype(np.float64), np.diff(sums, axis=1), np.diff(hits, axis=1), n)


def _positives_below(positives: Array, scores: Array, cuts: Ints) -> Array:
    """Positives among the first `cut` sorted scores; split ties share their positives evenly."""
    n = len(scores)
    below = np.zeros(len(cuts))
    below[-1] = len(positives)
    inner = np.flatnonzero((cuts > 0) & (cuts < n))
    last = scores[cuts[inner] - 1]
    below[inner] = positives.searchsorted(last, side="right")
    below[cuts == n] = len(positives)
    for at in inner[scores[cuts[inner]] == last]:  # a cut through a group of ties
        cut, value = cuts[at], scores[cuts[at]]
        low, high = scores.searchsorted(value, "left"), scores.searchsorted(value, "right")
        first, behind = positives.searchsorted(value, "left"), positives.searchsorted(value, "right")
        below[at] = first + (behind - first) * (cut - low) / (high - low)
    return below
