"""The sorted curve of rows with weights: every count becomes a sum of weights.

Whole-number weights are rows that occur so often, and give exactly the numbers of the repeated rows. Other weights are
shares: only their proportions matter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Integers, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves.curve import (
    Bins,
    Closed,
    Curve,
    MassRule,
    Outcomes,
    Scheme,
    check_bins,
    differences,
    equal_width_edges,
    prefix_sums,
)


@dataclass(frozen=True, eq=False)
class WeightedCurve(Curve):
    """Scores in ascending order with their outcomes and weights; rows of weight 0 are left out.

    >>> curve = WeightedCurve.weigh(np.array([0.9, 0.6]), np.array([1.0, 0.0]), np.array([3.0, 1.0]))
    >>> curve.bins(1).confidence  # (3 * 0.9 + 0.6) / 4
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
    def effective(self) -> float:
        """Rows that a unit of weight is worth: 1 where weights count rows, by Kish's formula where they are shares."""
        return 1.0 if is_whole(self.weights) else self.total / float(self.weights @ self.weights)

    @cached_property
    def weight_sum(self) -> Array:
        return prefix_sums(self.weights)

    @cached_property
    def score_sum(self) -> Array:
        return prefix_sums(self.scores * self.weights)

    @cached_property
    def outcome_sum(self) -> Array:
        return prefix_sums(self.outcomes * self.weights)

    def group_blocks(self) -> Iterator[tuple[Array, Array]]:
        yield self.groups

    def _parts(self) -> Iterator[Curve]:
        yield self

    def sums_between(self, cuts: Ints) -> tuple[Array, Array, Array]:
        return differences(cuts, self.weight_sum, self.score_sum, self.outcome_sum)

    def repeat(self, counts: Ints) -> "WeightedCurve":
        w = counts[self.order] * self.weights
        keep = w > 0
        keys = None if self.keys is None else self.keys[keep]
        return WeightedCurve(self.scores[keep], self.outcomes[keep], np.arange(int(keep.sum())), w[keep], keys=keys)

    def above(self, threshold: float) -> "WeightedCurve":
        keep = self.scores > threshold
        return WeightedCurve(self.scores[keep], self.outcomes[keep], self.order[keep], self.weights[keep])

    def bins(
        self, count: int, scheme: Scheme = "width", *, closed: Closed = "right", mass_rule: MassRule = "sort"
    ) -> Bins:
        check_bins(count)
        if scheme == "mass" and mass_rule == "sort":
            return self._equal_weight(count)
        cuts = self._cuts(count, scheme, closed, mass_rule)
        return Bins(*self.sums_between(cuts), self.total, self.effective)

    def bin_of(
        self, count: int, scheme: Scheme = "width", *, closed: Closed = "right", mass_rule: MassRule = "sort"
    ) -> Integers:
        """The bin of each sorted sample (of its middle, where an edge splits it); -1 where it is in none."""
        if scheme == "mass" and mass_rule == "sort":
            middle = self.weight_sum[:-1] + self.weights / 2
            return np.clip(np.searchsorted(self._places(count), middle, side="right") - 1, 0, count - 1)
        cuts = self._cuts(count, scheme, closed, mass_rule)
        numbers = np.full(self.n, -1)
        numbers[cuts[0] : cuts[-1]] = np.repeat(np.arange(count), np.diff(cuts))
        return numbers

    def edges(self, count: int, scheme: Scheme, mass_rule: MassRule) -> Array:
        """(count + 1,): what parts the bins, by value; bins of equal weight keep their ties together here."""
        if scheme == "width":
            return equal_width_edges(count)
        places = self._places(count)
        if mass_rule == "interp":
            at = np.linspace(0, self.total, count + 1)
            low = np.floor(at)
            first = self._value(low)
            return np.asarray(first + (at - low) * (self._value(low + 1) - first))
        if mass_rule == "midpoint":
            inner = (self._value(places[1:-1], "left") + self._value(places[1:-1])) / 2
        elif mass_rule == "stride":
            inner = self._value(np.arange(1, count) * np.floor(self.total / count))
        else:
            inner = self._value(places[1:-1], "left")
        return np.concatenate([[0.0], inner, [1.0]])

    def _value(self, place: Array, side: Literal["left", "right"] = "right") -> Array:
        """The score that stands at a place of the list in which each row is as long as its weight."""
        at = np.searchsorted(self.weight_sum, place, side) - 1
        return self.scores[np.clip(at, 0, self.n - 1)]

    def _places(self, count: int) -> Array:
        """The bounds of bins of equal weight; counted rows are not split, the first bins get one more."""
        if not is_whole(self.weights):
            return np.linspace(0, self.total, count + 1)
        size, more = divmod(self.total, count)
        index = np.arange(count + 1)
        return np.asarray(index * size + np.minimum(index, more), dtype=np.float64)

    def _equal_weight(self, count: int) -> Bins:
        """Bins of equal weight: a row on an edge is split, and a group of ties shares its outcomes evenly."""
        places, ends = self._places(count), np.concatenate([[0], self.group_ends])
        at = self.weight_sum[ends]
        score, outcome = (np.diff(np.interp(places, at, of[ends])) for of in (self.score_sum, self.outcome_sum))
        return Bins(np.diff(places), score, outcome, self.total, self.effective)

    def _cuts(self, count: int, scheme: Scheme, closed: Closed, mass_rule: MassRule) -> Ints:
        cuts = np.searchsorted(self.scores, self.edges(count, scheme, mass_rule), side=closed)
        if (
            mass_rule != "interp" or scheme == "width"
        ):  # outer bins take all up to the ends; interp drops its smallest value
            cuts[0], cuts[-1] = 0, self.n
        return cuts


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

    def bins(
        self, count: int, scheme: Scheme = "width", *, closed: Closed = "right", mass_rule: MassRule = "sort"
    ) -> Bins:
        bins_by_class = [curve.bins(count, scheme, closed=closed, mass_rule=mass_rule) for curve in self.curves]
        weight, score, outcome = (
            np.stack([getattr(b, name) for b in bins_by_class]) for name in ("count", "score_sum", "outcome_sum")
        )
        return Bins(weight, score, outcome, bins_by_class[0].n, bins_by_class[0].effective)

    def many_bins(
        self, counts: Sequence[int], scheme: Scheme = "width", *, closed: Closed = "right", mass_rule: MassRule = "sort"
    ) -> list[Bins]:
        return [self.bins(count, scheme, closed=closed, mass_rule=mass_rule) for count in counts]

    def inner_edges(self, count: int, scheme: Scheme, mass_rule: MassRule) -> Array:
        return np.stack([curve.edges(count, scheme, mass_rule)[1:-1] for curve in self.curves])

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
