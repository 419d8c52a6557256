"""One calibration curve per class, built from sorted values alone (no argsort)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves import native
from calibrant.core.curves.curve import Bins, Closed, MassRule, Scheme, bin_edges, equal_chunks


@dataclass(frozen=True, eq=False)
class ClassCurves:
    """One curve per class: sorted scores, their prefix sums, and the sorted scores of the positives."""

    scores: Array  # (b, n) each row ascending
    positives: list[Array]  # b sorted arrays: scores of the rows whose label is the class

    @cached_property
    def score_sum(self) -> Array:
        if native.is_available() and self.scores.flags.c_contiguous:
            return native.prefix_sums(self.scores)
        b, n = self.scores.shape
        sums = np.empty((b, n + 1))  # (b, n + 1)
        sums[:, 0] = 0.0
        np.cumsum(self.scores, axis=1, out=sums[:, 1:])
        return sums

    @property
    def empty(self) -> bool:
        return not self.scores.size

    def groups(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield, per class, its distinct scores, the number of rows with each, and how many of these are positive."""
        for scores, positives in zip(self.scores, self.positives, strict=True):
            ends = np.append(np.flatnonzero(np.diff(scores)) + 1, len(scores))
            x = scores[ends - 1]
            positive_count = np.diff(np.searchsorted(positives, x, side="right"), prepend=0)
            yield x, np.diff(ends, prepend=0).astype(np.float64), positive_count.astype(np.float64)

    def above(self, threshold: float) -> Iterator["ClassCurves"]:
        """Yield, per class, the curve of its probabilities above a threshold."""
        for scores, positives in zip(self.scores, self.positives, strict=True):
            top = scores[scores.searchsorted(threshold, side="right") :]
            yield ClassCurves(top[None], [positives[positives.searchsorted(threshold, side="right") :]])

    def bins(
        self, count: int, scheme: Scheme = "width", *, closed: Closed = "right", mass_rule: MassRule = "sort"
    ) -> Bins:
        return self.many_bins((count,), scheme, closed=closed, mass_rule=mass_rule)[0]

    def many_bins(
        self, counts: Sequence[int], scheme: Scheme = "width", *, closed: Closed = "right", mass_rule: MassRule = "sort"
    ) -> list[Bins]:
        """Bins of several counts, from one search in each class."""
        if scheme == "mass" and mass_rule == "sort":
            return [self._chunks(count) for count in counts]
        b, n = self.scores.shape
        edges, columns = self._join_edges(counts, scheme, mass_rule)
        known = self._find_known_cuts(edges, columns, counts, scheme, closed, mass_rule)
        cuts, below = np.empty((b, edges.shape[-1]), dtype=np.int64), np.empty((b, edges.shape[-1]))
        for row, positives in enumerate(self.positives):
            at = edges if edges.ndim == 1 else edges[row]
            cuts[row] = known[1] if known[0][row] else self.scores[row].searchsorted(at, side=closed)
            below[row] = positives.searchsorted(at, side=closed)
        if (
            mass_rule != "interp" or scheme == "width"
        ):  # outer bins take all up to the ends; interp drops its smallest value
            first, last = [place[0] for place in columns], [place[-1] for place in columns]
            cuts[:, first], cuts[:, last] = 0, n
            below[:, first], below[:, last] = 0, np.array([len(positives) for positives in self.positives])[:, None]
        sums = np.take_along_axis(self.score_sum, cuts, axis=1)
        return [_differences(cuts[:, place], sums[:, place], below[:, place], n) for place in columns]

    def _join_edges(self, counts: Sequence[int], scheme: Scheme, mass_rule: MassRule) -> tuple[Array, list[Ints]]:
        """Join the edges of all counts, (edges,) or (b, edges), and give the places of the edges of each count."""
        edges_by_count = [bin_edges(self.scores, count, scheme, mass_rule) for count in counts]
        whole = np.concatenate([edges for edges in edges_by_count if edges is not None], axis=-1)
        places = np.arange(whole.shape[-1])
        if scheme == "width":  # every edge of 5 bins is one of 10 as well
            whole, places = np.unique(whole, return_inverse=True)
        return whole, np.split(places, np.cumsum([count + 1 for count in counts])[:-1])

    def inner_edges(self, count: int, scheme: Scheme, mass_rule: MassRule) -> Array:
        """Edges between the bins of each class, (b, count - 1); bins made by position keep their ties together here."""
        b, n = self.scores.shape
        edges = bin_edges(self.scores, count, scheme, mass_rule)
        if edges is None:
            return self.scores[:, np.maximum(equal_chunks(n, count)[1:-1] - 1, 0)]
        return np.broadcast_to(edges[..., 1:-1], (b, count - 1))

    def _find_known_cuts(
        self,
        edges: Array,
        columns: list[Ints],
        counts: Sequence[int],
        scheme: Scheme,
        closed: Closed,
        mass_rule: MassRule,
    ) -> "tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]], Ints]":
        """Rows whose cuts need no search: edges midway between two chunks cut there, unless ties or rounding forbid."""
        b, n = self.scores.shape
        known: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = np.zeros(b, dtype=bool)
        chunks: Ints = np.empty(0, dtype=np.int64)
        if scheme == "mass" and mass_rule == "midpoint" and closed == "right" and max(counts) <= n:
            chunks = np.concatenate([equal_chunks(n, count) for count in counts])
            inner = np.concatenate([place[1:-1] for place in columns])
            known = np.asarray((edges[:, inner] < self.scores[:, chunks[inner]]).all(axis=1))
        return known, chunks

    def _chunks(self, count: int) -> Bins:
        """Bins of equal mass by position alone."""
        b, n = self.scores.shape
        cuts = np.broadcast_to(equal_chunks(n, count), (b, count + 1))
        rows = zip(self.positives, self.scores, cuts, strict=True)
        below = np.stack([_positives_below(positives, scores, at) for positives, scores, at in rows])
        return _differences(cuts, np.take_along_axis(self.score_sum, cuts, axis=1), below, n)


def _differences(cuts: Ints, sums: Array, below: Array, n: int) -> Bins:
    """Bins (b, bins) from running numbers at their ends."""
    return Bins(np.diff(cuts, axis=1).astype(np.float64), np.diff(sums, axis=1), np.diff(below, axis=1), n)


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
