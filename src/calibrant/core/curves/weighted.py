"""The sorted curve of rows with weights: every count becomes a sum of weights.

Whole-number weights are rows that occur so often, and give exactly the numbers of the repeated rows. Other weights are
shares: only their proportions matter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves.binning import Binning, equal_shares
from calibrant.core.curves.curve import Bins, Curve, Outcomes, differences, prefix_sums


@dataclass(frozen=True, eq=False)
class WeightedCurve(Curve):
    """Scores in ascending order with their outcomes and weights; rows of weight 0 are left out.

    >>> curve = WeightedCurve.weigh(np.array([0.9, 0.6]), np.array([1.0, 0.0]), np.array([3.0, 1.0]))
    >>> curve.bins(Binning(1)).confidence  # (3 * 0.9 + 0.6) / 4
    array([0.825])
    """

    weights: Array  # (n,) in the order of the scores, each above 0

    @classmethod
    def weigh(cls, scores: Array, outcomes: Outcomes, weights: Array) -> "WeightedCurve":
        order = np.argsort(scores)
        order = order[weights[order] > 0]
        return cls(scores[order], outcomes[order].astype(np.float64), order, weights[order].astype(np.float64))

    @property
    def total(self) -> float:
        return float(self.weight_sum[-1])

    @cached_property
    def weight_unit(self) -> float:
        """Rows that a unit of weight is worth: 1 where weights count rows, by Kish's formula where they are shares."""
        if is_whole(self.weights):
            return 1.0
        largest = float(self.weights.max())
        shares = self.weights / largest  # squares of tiny weights would be zero
        return float(shares.sum() / (shares @ shares)) / largest

    @cached_property
    def weight_sum(self) -> Array:
        return prefix_sums(self.weights)

    @cached_property
    def cum_scores(self) -> Array:
        return prefix_sums(self.scores * self.weights)

    @cached_property
    def outcome_sum(self) -> Array:
        return prefix_sums(self.outcomes * self.weights)

    def group_blocks(self) -> Iterator[tuple[Array, Array]]:
        yield self.groups

    def _parts(self) -> Iterator[Curve]:
        yield self

    def sums_between(self, cuts: Ints) -> tuple[Array, Array, Array]:
        return differences(cuts, self.weight_sum, self.cum_scores, self.outcome_sum)

    def repeat(self, counts: Ints) -> "WeightedCurve":
        w = counts[self.order] * self.weights
        keep = w > 0
        keys = None if self.keys is None else self.keys[keep]
        return WeightedCurve(self.scores[keep], self.outcomes[keep], np.arange(int(keep.sum())), w[keep], keys=keys)

    def above(self, threshold: float) -> "WeightedCurve":
        keep = self.scores > threshold
        return WeightedCurve(self.scores[keep], self.outcomes[keep], self.order[keep], self.weights[keep])

    def places(self, bins: int) -> Array:
        return equal_shares(self.total, bins, whole=is_whole(self.weights))

    def value(self, places: Array, side: Literal["left", "right"] = "right") -> Array:
        sample = np.searchsorted(self.weight_sum, places, side) - 1
        return self.scores[np.clip(sample, 0, self.n - 1)]

    def samples_before(self, places: Array) -> Ints:
        before = np.searchsorted(self.weight_sum[:-1] + self.weights / 2, places, side="left")
        before[-1] = self.n
        return before


@dataclass(frozen=True, eq=False)
class WeightedCurves:
    """One curve per class, of rows with weights."""

    curves: tuple[WeightedCurve, ...]

    @classmethod
    def of(cls, probs: Array, labels: Ints, classes: slice, weights: Array) -> "WeightedCurves":
        class_numbers = range(classes.start, classes.stop)
        curves = (
            WeightedCurve.weigh(column, labels == c, weights) for c, column in zip(class_numbers, probs.T, strict=True)
        )
        return cls(tuple(curves))

    def groups(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield, per class, its distinct scores, the weight of the rows with each, and that of the positive ones."""
        for curve in self.curves:
            positives, negatives = curve.groups
            yield curve.scores[curve.group_ends - 1], positives + negatives, positives

    def bins(self, binning: Binning) -> Bins:
        bins_by_class = [curve.bins(binning) for curve in self.curves]
        weight, score, outcome = (
            np.stack([getattr(b, name) for b in bins_by_class]) for name in ("count", "score_sum", "outcome_sum")
        )
        return Bins(weight, score, outcome, bins_by_class[0].n, bins_by_class[0].weight_unit)

    def many_bins(self, binnings: Sequence[Binning]) -> list[Bins]:
        return [self.bins(binning) for binning in binnings]

    def inner_edges(self, binning: Binning) -> Array:
        return np.stack([binning.edges(curve)[1:-1] for curve in self.curves])

    def above(self, threshold: float) -> Iterator["WeightedCurves"]:
        """Yield, per class, the curve of its probabilities above a threshold."""
        for curve in self.curves:
            yield WeightedCurves((curve.above(threshold),))

    @property
    def empty(self) -> bool:
        return not any(curve.n for curve in self.curves)


def is_whole(weights: Array) -> bool:
    """Whether weights count rows."""
    return bool(np.all(weights == np.floor(weights)))


def effective_rows(weights: Array | None, n: int) -> float:
    """The effective number of n rows with these weights: the sum of whole weights, or by Kish's formula.

    >>> effective_rows(np.array([2.0, 1.0]), 2), effective_rows(np.array([0.5, 1.5]), 2)  # 2^2 / 2.5
    (3.0, 1.6)
    """
    if weights is None:
        return float(n)
    return float(weights.sum()) if is_whole(weights) else float(weights.sum() ** 2 / (weights @ weights))


def sort_curve(scores: Array, outcomes: Outcomes, weights: Array | None) -> Curve:
    """The curve of these rows, with their weights where they have any."""
    return Curve.sort(scores, outcomes) if weights is None else WeightedCurve.weigh(scores, outcomes, weights)
