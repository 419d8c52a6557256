"""One calibration curve per class, built from sorted values alone (no argsort)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves import native
from calibrant.core.curves.binning import Binning, equal_shares, find_ties
from calibrant.core.curves.curve import Bins


@dataclass(frozen=True, eq=False)
class ClassCurves:
    """One curve per class: sorted scores, their prefix sums, and the sorted scores of the positives."""

    scores: Array  # (b, n) each row ascending
    positives: list[Array]  # b sorted arrays: scores of the rows whose label is the class

    @cached_property
    def cum_scores(self) -> Array:
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

    @property
    def total(self) -> float:
        return float(self.scores.shape[1])

    def places(self, bins: int) -> Array:
        """The ends of equal shares of the rows, (bins + 1,)."""
        return equal_shares(self.total, bins)

    def value(self, places: Array, side: Literal["left", "right"] = "right") -> Array:
        """The scores of each class behind places of its sorted list, or in front of them (left), (b, places)."""
        sample = np.floor(places) if side == "right" else np.ceil(places) - 1
        return self.scores[:, np.clip(sample.astype(np.int64), 0, self.scores.shape[1] - 1)]

    def bins(self, binning: Binning) -> Bins:
        return self.many_bins([binning])[0]

    def many_bins(self, binnings: Sequence[Binning]) -> list[Bins]:
        """Bins that differ in their number alone, from one search in each class."""
        first = binnings[0]
        if first.by_place:
            return [self._equal_shares(binning.bins) for binning in binnings]
        edges, columns = self._join_edges(binnings)
        known, places = self._find_known_cuts(edges, binnings)
        cuts = np.empty((len(self.scores), edges.shape[-1]), dtype=np.int64)
        below = np.empty(cuts.shape)
        for row, (scores, positives) in enumerate(zip(self.scores, self.positives, strict=True)):
            at = edges if edges.ndim == 1 else edges[row]
            cuts[row] = places if known[row] else first.cuts(scores, at)
            below[row] = first.cuts(positives, at)
        sums = np.take_along_axis(self.cum_scores, cuts, axis=1)
        return [_differences(cuts[:, at], sums[:, at], below[:, at], self.total) for at in columns]

    def inner_edges(self, binning: Binning) -> Array:
        """Edges between the bins of each class, (b, bins - 1); equal scores stay together here."""
        return np.broadcast_to(binning.edges(self)[..., 1:-1], (len(self.scores), binning.bins - 1))

    def _join_edges(self, binnings: Sequence[Binning]) -> tuple[Array, list[Ints]]:
        """Join the edges of all binnings, (edges,) or (b, edges), and give the places of the edges of each."""
        whole = np.concatenate([binning.edges(self) for binning in binnings], axis=-1)
        places = np.arange(whole.shape[-1])
        if whole.ndim == 1:  # every edge of 5 bins is one of 10 as well
            whole, places = np.unique(whole, return_inverse=True)
        return whole, np.split(places, np.cumsum([binning.bins + 1 for binning in binnings])[:-1])

    def _find_known_cuts(
        self, edges: Array, binnings: Sequence[Binning]
    ) -> "tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]], Ints]":
        """Rows whose cuts need no search: all their edges part the list as equal shares of it do, at these places."""
        if edges.ndim == 1:
            return np.zeros(len(self.scores), dtype=bool), np.empty(0, dtype=np.int64)
        places = np.concatenate([self.places(binning.bins) for binning in binnings])
        before, behind = self.value(places, "left"), self.value(places)
        if binnings[0].closed == "right":
            fits = ((before <= edges) | (places == 0)) & ((edges < behind) | (places == self.total))
        else:
            fits = ((before < edges) | (places == 0)) & ((edges <= behind) | (places == self.total))
        return np.asarray(fits.all(axis=1)), places.astype(np.int64)

    def _equal_shares(self, bins: int) -> Bins:
        """Bins of equal mass; a cut through a group of ties shares its positives evenly."""
        places, below = self.places(bins), np.empty((len(self.scores), bins + 1))
        for row, last in enumerate(self.value(places, "left")):
            (low, high), (first, behind) = (find_ties(of, last) for of in (self.scores[row], self.positives[row]))
            below[row] = np.where(places > 0, first + (behind - first) * (places - low) / (high - low), 0.0)
        cuts = np.broadcast_to(places.astype(np.int64), below.shape)
        return _differences(cuts, np.take_along_axis(self.cum_scores, cuts, axis=1), below, self.total)


def _differences(cuts: Ints, sums: Array, below: Array, n: float) -> Bins:
    """Bins (b, bins) from running numbers at their ends."""
    return Bins(np.diff(cuts, axis=1).astype(np.float64), np.diff(sums, axis=1), np.diff(below, axis=1), n)
