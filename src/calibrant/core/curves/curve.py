"""The sorted calibration curve: sort once, prefix-sum once; every binning is two searches in it.

`Curve` holds one sequence of (score, outcome) pairs, for instance top-label confidence and correctness.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Integers, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves import native
from calibrant.core.curves.binning import Binning, Closed, check_bins, equal_shares, equal_width_edges, find_ties
from calibrant.core.curves.keys import floored_log_odds, log_odds_of, scores_of
from calibrant.core.parallel import run_pieces

MOST_UNSORTED_BINS = 1000  # up to which tables of bins stay in the processor's cache
LONG = 1 << 22  # rows from which on memory counts: outcomes of one byte, sums from the rows themselves
BLOCK = 1 << 18  # rows of a long curve that are looked at together

_T = TypeVar("_T")
Outcomes = npt.NDArray[np.float64] | npt.NDArray[np.bool_]  # 1 or True where the event occurred


@dataclass(frozen=True)
class Bins:
    """Sums per bin, the last axis being the bins; `n` counts all samples (or their weight), binned or dropped."""

    count: Array
    score_sum: Array
    outcome_sum: Array
    n: float
    weight_unit: float = 1.0  # rows that a unit of weight is worth

    def __add__(self, other: "Bins") -> "Bins":
        """The bins of both sets of rows together."""
        sums = self.score_sum + other.score_sum, self.outcome_sum + other.outcome_sum
        return Bins(self.count + other.count, *sums, self.n + other.n, self.weight_unit)

    @cached_property
    def share(self) -> Array:
        return self.count / self.n

    @cached_property
    def confidence(self) -> Array:
        """Mean score per bin; 0 in an empty bin, which has no weight anywhere."""
        return np.divide(self.score_sum, self.count, out=np.zeros_like(self.score_sum), where=self.count > 0)

    @cached_property
    def accuracy(self) -> Array:
        """Share of positive outcomes per bin; 0 in an empty bin."""
        return np.divide(self.outcome_sum, self.count, out=np.zeros_like(self.outcome_sum), where=self.count > 0)

    @property
    def gap(self) -> Array:
        """Confidence minus accuracy: positive where the scores promise too much."""
        return self.confidence - self.accuracy

    @property
    def ece(self) -> float:
        """Distance of scores from outcomes, averaged over the bins by their size."""
        return float(np.abs(self.score_sum - self.outcome_sum).sum() / self.n)

    @property
    def filled(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
        return self.count > 0


class _kept_of_short_curves(cached_property[_T]):  # noqa: N801  named as the decorator that it is
    """A cached property that long curves compute again, because it is as long as they are."""

    def __get__(self, curve: Any, owner: Any = None) -> Any:
        if curve is None or curve.n < LONG:
            return super().__get__(curve, owner)
        return self.func(curve)


@dataclass(frozen=True, eq=False)
class Curve:
    """Scores in ascending order and their outcomes (1 or 0), with the prefix sums of both.

    >>> curve = Curve.sort(np.array([0.9, 0.6, 0.7]), np.array([1.0, 0.0, 1.0]))
    >>> curve.bins(Binning(2)).count  # nothing in (0, 0.5], all three in (0.5, 1]
    array([0., 3.])
    """

    scores: Array  # (n,) ascending
    outcomes: Array  # (n,) 1 where the event occurred
    rows: Ints | Callable[[], Ints]  # (n,) original row of each sorted sample, or how to find it
    keys: Array | None = field(default=None, kw_only=True)  # (n,) ascending: what tells samples apart, if not scores

    @classmethod
    def sort(cls, scores: Array, outcomes: Outcomes) -> "Curve":
        if len(scores) and scores.min() >= 0 and _are_events(outcomes):
            return cls.sort_pairs(partial(pair_up, scores, outcomes))
        order = np.argsort(scores)
        return cls(scores[order], outcomes[order].astype(np.float64), order)

    @classmethod
    def sort_pairs(cls, pairs: Callable[[], npt.NDArray[np.uint64]]) -> "Curve":
        """Sort pairs (`pair_up`), of which every call gives a new array: a second one tells the order, if needed."""
        return cls(*_sort_in_place(pairs()), lambda: np.argsort(pairs()))

    @cached_property
    def order(self) -> Ints:
        """Original row of each sorted sample."""
        return self.rows() if callable(self.rows) else self.rows

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the order of rows in place of the function that finds it."""
        return self.__dict__ | {"rows": self.order}

    @property
    def n(self) -> int:
        return len(self.scores)

    @property
    def total(self) -> float:
        """The weight of all rows: their number, where they have none."""
        return float(self.n)

    @property
    def weight_unit(self) -> float:
        """The number of rows that a unit of weight is worth."""
        return 1.0

    @cached_property
    def weights(self) -> Array:
        return np.ones(self.n) if self.n < LONG else np.broadcast_to(1.0, self.n)

    @_kept_of_short_curves
    def weight_sum(self) -> Array:
        return np.arange(self.n + 1.0)  # (n + 1,)

    @_kept_of_short_curves
    def cum_scores(self) -> Array:
        return prefix_sums(self.scores)  # (n + 1,)

    @_kept_of_short_curves
    def outcome_sum(self) -> Array:
        return prefix_sums(self.outcomes)  # (n + 1,)

    @_kept_of_short_curves
    def group_ends(self) -> Ints:
        """Positions just behind each group of equal scores (of equal keys): where a threshold can stand."""
        last, keys = np.ones(self.n, dtype=bool), self.scores if self.keys is None else self.keys
        np.not_equal(keys[1:], keys[:-1], out=last[:-1])
        ends = np.flatnonzero(last)
        ends += 1
        return ends

    @cached_property
    def groups(self) -> tuple[Array, Array]:
        """Positive and negative outcomes in each group of equal scores, ascending."""
        if type(self) is Curve and self.n >= LONG:  # without running sums of all rows
            positives, negatives = zip(*self.group_blocks(), strict=True)
            return np.concatenate(positives), np.concatenate(negatives)
        return self._groups()

    def _groups(self) -> tuple[Array, Array]:
        outcomes = np.diff(self.outcome_sum[self.group_ends], prepend=0.0)
        return outcomes, np.diff(self.weight_sum[self.group_ends], prepend=0.0) - outcomes

    def group_blocks(self) -> Iterator[tuple[Array, Array]]:
        """Positive and negative outcomes in each group of equal scores, in blocks that spare memory on long curves."""
        if self.n < LONG:
            yield self.groups
            return
        for part in self._parts():
            yield part._groups()

    def gap_blocks(self) -> Iterator[tuple[Array, Array]]:
        """The score and the sum of scores minus outcomes at the end of each group of equal scores; in blocks.

        >>> curve = Curve.sort(np.array([0.2, 0.5, 0.5]), np.array([0.0, 1.0, 0.0]))
        >>> [(scores.tolist(), gaps.round(6).tolist()) for scores, gaps in curve.gap_blocks()]
        [([0.2, 0.5], [0.2, 0.2])]
        """
        scores, outcomes = 0.0, 0.0
        for part in self._parts():
            ends, score_sum, outcome_sum = part.group_ends, scores + part.cum_scores, outcomes + part.outcome_sum
            yield part.scores[ends - 1], score_sum[ends] - outcome_sum[ends]
            scores, outcomes = score_sum[-1], outcome_sum[-1]

    def _parts(self) -> Iterator["Curve"]:
        """The curve itself, or a long one cut into short ones, each group of equal scores in one of them."""
        if self.n < LONG:
            yield self
            return
        start, keys = 0, self.scores if self.keys is None else self.keys
        while start < self.n:
            stop = int(np.searchsorted(keys, keys[min(start + BLOCK, self.n) - 1], side="right"))
            part = slice(start, stop)
            yield Curve(self.scores[part], self.outcomes[part], np.arange(0), keys=keys[part])
            start = stop

    def sums_between(self, cuts: Ints) -> tuple[Array, Array, Array]:
        """Sums of weights, scores and outcomes of the samples between each two cuts."""
        if self.n < LONG:
            return differences(cuts, self.weight_sum, self.cum_scores, self.outcome_sum)
        scores, outcomes = ([float(of[a:b].sum()) for a, b in pairwise(cuts)] for of in (self.scores, self.outcomes))
        return np.diff(cuts).astype(np.float64), np.array(scores), np.array(outcomes)

    def repeat(self, counts: Ints) -> "Curve":
        """The curve of a resample in which row i of the data occurs counts[i] times. No sort needed."""
        return _ResampledCurve(self, counts[self.order])

    def with_outcomes(self, outcomes: Array) -> "Curve":
        """A curve of these scores with other outcomes, given in sorted order."""
        return replace(self, outcomes=outcomes)

    def samples(self, places: Ints) -> "Curve":
        """The curve of some sorted samples, in ascending order."""
        keys = None if self.keys is None else self.keys[places]
        return Curve(self.scores[places], self.outcomes[places], places, keys=keys)

    def read_keys(self) -> "Curve":
        """The curve of the scores that its own scores, keys (`keys_of`), stand for."""
        return replace(self, scores=scores_of(self.scores), keys=self.scores)

    def log_odds(self) -> Array:
        """Log-odds of the scores: those of the logits where keys are known, of floored scores elsewhere."""
        return floored_log_odds(self.scores) if self.keys is None else log_odds_of(self.keys)

    def places(self, bins: int) -> Array:
        """The ends of equal shares of the rows, by weight, (bins + 1,)."""
        return equal_shares(self.total, bins)

    def value(self, places: Array, side: Literal["left", "right"] = "right") -> Array:
        """The scores behind places of the sorted list, or in front of them (left)."""
        sample = np.floor(places) if side == "right" else np.ceil(places) - 1
        return self.scores[np.clip(sample.astype(np.int64), 0, self.n - 1)]

    def samples_before(self, places: Array) -> Ints:
        """The number of samples whose middle lies before a place of the sorted list."""
        return places.astype(np.int64)

    def cuts(self, binning: Binning) -> Ints:
        """The sample at which each bin begins, and where the last one ends, (bins + 1,)."""
        if binning.by_place:
            return self.samples_before(self.places(binning.bins))
        return binning.cuts(self.scores, binning.edges(self))

    def bins(self, binning: Binning) -> Bins:
        """The sums of each bin; bins of equal mass that cut through equal scores share their sums evenly."""
        check_bins(binning.bins)
        sums = self._sums_of_shares(binning) if binning.by_place else self.sums_between(self.cuts(binning))
        return Bins(*sums, self.total, self.weight_unit)

    def residuals(self, rows: slice) -> Array:
        """Score minus outcome of some sorted samples."""
        return self.scores[rows] - self.outcomes[rows]

    def bin_of(self, binning: Binning) -> Integers:
        """The bin of each sorted sample (of its middle, where an edge splits it); -1 where it is in none."""
        numbers: Integers = np.full(self.n, -1, dtype=np.int32 if self.n >= LONG else np.int64)
        for i, (start, stop) in enumerate(pairwise(self.cuts(binning))):
            numbers[start:stop] = i
        return numbers

    def bin_starts(self, binning: Binning) -> Array | None:
        """The least score of each bin, and of what lies above the last; None where equal scores are in several bins.

        >>> curve = Curve.sort(np.array([0.9, 0.6, 0.7]), np.array([1.0, 0.0, 1.0]))
        >>> curve.bin_starts(Binning(3, "mass")), curve.bin_starts(Binning(2))
        (array([0.6, 0.7, 0.9, inf]), array([0.6, 0.6, inf]))
        """
        cuts = self.cuts(binning)
        inner = cuts[(cuts > 0) & (cuts < self.n)]
        if np.any(self.scores[inner - 1] == self.scores[inner]):
            return None
        return np.asarray(np.where(cuts < self.n, self.scores[np.minimum(cuts, self.n - 1)], np.inf))

    def _sums_of_shares(self, binning: Binning) -> tuple[Array, Array, Array]:
        """Sums of weights, scores and outcomes in equal shares; a cut through a group of ties takes its part of it."""
        places = self.places(binning.bins)
        low, high = find_ties(self.scores, self.value(places, "left"))
        (weight, *before), (whole, *behind) = self._sums_of_first(low), self._sums_of_first(high)
        part = np.where(places > 0, (places - weight) / (whole - weight), 0.0)
        scores, outcomes = (a + part * (b - a) for a, b in zip(before, behind, strict=True))
        return np.diff(places), np.diff(scores), np.diff(outcomes)

    def _sums_of_first(self, samples: Ints) -> tuple[Array, Array, Array]:
        """Sums over the first so many samples, for ascending `samples`; long curves keep no running sums."""
        if self.n < LONG:
            return self.weight_sum[samples], self.cum_scores[samples], self.outcome_sum[samples]
        weights, scores, outcomes = map(np.cumsum, self.sums_between(np.concatenate([[0], samples])))
        return weights, scores, outcomes


class _ResampledCurve(Curve):
    """A curve whose samples are repeated when they are read: measures of ranking read the tie groups alone."""

    _curve: Curve
    _counts: Ints  # of each sample of the curve, in its order

    def __init__(self, curve: Curve, counts: Ints) -> None:
        vars(self).update(_curve=curve, _counts=counts)  # past the frozen __setattr__

    @property
    def n(self) -> int:
        return len(self.scores)

    @cached_property
    def scores(self) -> Array:
        return np.repeat(self._curve.scores, self._counts)

    @cached_property
    def outcomes(self) -> Array:
        return np.repeat(self._curve.outcomes, self._counts)

    @cached_property
    def rows(self) -> Ints:
        return np.arange(self.n)

    @cached_property
    def keys(self) -> Array | None:
        return None if self._curve.keys is None else np.repeat(self._curve.keys, self._counts)

    @cached_property
    def groups(self) -> tuple[Array, Array]:
        positives, negatives = next(self.group_blocks())
        filled = np.flatnonzero(positives + negatives)
        return positives[filled], negatives[filled]

    def group_blocks(self) -> Iterator[tuple[Array, Array]]:
        """Positive and negative outcomes of each group; groups that the resample does not have are empty."""
        ends, size = self._curve.group_ends, self._counts.astype(np.float64)
        positives = size * self._curve.outcomes
        if len(ends) < len(size):
            starts = np.append(0, ends[:-1])
            size, positives = np.add.reduceat(size, starts), np.add.reduceat(positives, starts)
        yield positives, size - positives


def differences(cuts: Ints, weights: Array, scores: Array, outcomes: Array) -> tuple[Array, Array, Array]:
    """Differences of prefix sums of weights, scores and outcomes between consecutive cuts."""
    return np.diff(weights[cuts]), np.diff(scores[cuts]), np.diff(outcomes[cuts])


def _are_events(outcomes: Outcomes) -> bool:
    """Whether outcomes are 0 and 1 alone, which fit into one bit."""
    return outcomes.dtype == np.bool_ or bool(np.all((outcomes == 0) | (outcomes == 1)))


def pair_up(scores: Array, outcomes: Outcomes) -> npt.NDArray[np.uint64]:
    """One integer for each score and its outcome, in order: scores that are not negative leave the first bit free."""
    pairs = (scores + 0.0).view(np.uint64)  # + 0: there are two zeros
    pairs <<= np.uint64(1)
    pairs |= outcomes.astype(np.uint8)
    return pairs


def _sort_in_place(pairs: npt.NDArray[np.uint64]) -> tuple[Array, Array]:
    """Scores in ascending order with their outcomes, of many rows in one byte each: no sort of row numbers."""
    pairs.sort()
    if len(pairs) < LONG:
        return (pairs >> np.uint64(1)).view(np.float64), (pairs & np.uint64(1)).astype(np.float64)
    ordered = np.empty(len(pairs), dtype=np.int8)
    for start in range(0, len(pairs), BLOCK):
        part = slice(start, start + BLOCK)
        ordered[part] = pairs[part] & np.uint64(1)
    pairs >>= np.uint64(1)
    return pairs.view(np.float64), ordered  # type: ignore[return-value]  # whole numbers do as well


def bin_scores(scores: Array, outcomes: Outcomes, count: int, closed: Closed) -> Bins | None:
    """Equal-width bins of scores in any order, without a sort; None where the curve has to be sorted."""
    if not native.is_available() or outcomes.dtype != np.bool_ or count > MOST_UNSORTED_BINS:
        return None
    numbers, occurred = np.ascontiguousarray(scores), np.ascontiguousarray(outcomes, dtype=np.bool_)
    edges, parts = equal_width_edges(count), native.shares(scores)
    tables = [edges] * len(parts)

    def work(rows: slice) -> None:
        tables[parts.index(rows)] = native.score_bins(numbers[rows], occurred[rows], edges, closed == "right")

    run_pieces(work, parts, scores.size)
    counts, score_sum, outcome_sum = reduce(np.add, tables)
    return Bins(counts, score_sum, outcome_sum, len(scores))


def prefix_sums(values: Array) -> Array:
    """The sum of the first i values, (n + 1,)."""
    sums = np.empty(len(values) + 1)
    sums[0] = 0.0
    np.cumsum(values, out=sums[1:])
    return sums
