"""Sums of a measure in a stream: which it needs, and its value and noise from them. One class a kind of sums."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.curve import Bins
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws, Estimate
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures import (
    ZERO_RATIO,
    BinnedMeasure,
    BinOptions,
    ClassMeasure,
    Measure,
    OfCurve,
    RatioMeasure,
    RowMeasure,
    Streams,
    ratio_noise,
)
from calibrant.streaming.histogram_ranking import ranking_draws, ranking_value
from calibrant.streaming.state import State, check_bins, check_ranking, check_ratio, check_rows
from calibrant.streaming.sums import FINE, SUMS, class_sums, fine_sums, ratio_sums, row_sums, score_sums

M = TypeVar("M", bound=Measure)
B = TypeVar("B", bound=BinOptions)

RANKING = "ranking"
POSITIVE = f"{RANKING}, positive class"


class Totals(Protocol):
    """Sums over all rows that every measure needs; an accumulator has them."""

    @property
    def n(self) -> int: ...
    @property
    def total(self) -> float:
        """The sum of the weights."""

    @property
    def square(self) -> float:
        """The sum of the squared weights."""

    @property
    def weighted(self) -> bool: ...
    @property
    def counts(self) -> bool:
        """Whether every weight is a whole number."""


class MeasureSums(ABC, Generic[M]):
    """A measure and the sums it is computed from."""

    streams: ClassVar[Streams]  # what measures of this kind say in their `streams`
    base: ClassVar[type[Measure]]  # and what they are
    noise: ClassVar[str] = "sums"  # what the draws of an interval disturb
    of_score: bool = False  # whether it sums the scores that are judged, as the histogram does

    def __init__(self, measure: M, spec: str) -> None:
        self.measure, self.spec = measure, spec

    @property
    def name(self) -> str:
        """The name of the sums; measures with the same name share them."""
        return self.spec

    @abstractmethod
    def shape(self, k: int) -> tuple[int, ...]: ...

    @abstractmethod
    def add_up(self, p: Predictions, weights: Array | None) -> Array:
        """Compute the sums over a batch."""

    @abstractmethod
    def check(self, sums: Array, state: State) -> None:
        """Raise a ValueError for sums that no predictions have."""

    @abstractmethod
    def value(self, sums: Array, rows: Totals) -> float: ...

    def estimate(self, sums: Array, rows: Totals, seed: int, *, subtracted: bool = False) -> Estimate:
        """The value with the noise of the sums, and with a margin for what sums do not know of rows."""
        value, margin = self.value_and_margin(sums, rows)
        draws = self.draws(sums, rows, seed)
        method = f"noise of the {self.noise}, {len(draws):,} draws"
        noise = Draws.from_resamples(value, draws, method)
        return Estimate(value=value, noise=noise, bounds=self.measure.bounds, margin=margin)

    @abstractmethod
    def draws(self, sums: Array, rows: Totals, seed: int) -> Array:
        """Values under the sampling noise of the sums, with the variance that a bootstrap of the rows would give."""

    def value_and_margin(self, sums: Array, rows: Totals) -> tuple[float, float | None]:
        """The value, and its largest error because sums know less than rows; None where it is exact."""
        return self.value(sums, rows), None


class RowSums(MeasureSums[RowMeasure]):
    """A mean of one number per row."""

    streams, base = "rows", RowMeasure

    def shape(self, k: int) -> tuple[int, ...]:
        return (3,)

    def add_up(self, p: Predictions, weights: Array | None) -> Array:
        return row_sums(self.measure.rows(p).astype(np.float64), weights)

    def check(self, sums: Array, state: State) -> None:
        check_rows(self.name, sums, state, self.measure.bounds)

    def value(self, sums: Array, rows: Totals) -> float:
        return float(sums[0] / rows.total)

    def draws(self, sums: Array, rows: Totals, seed: int) -> Array:
        mean = sums[0] / rows.total
        error = np.sqrt(max(sums[1] - 2 * mean * sums[2] + mean**2 * rows.square, 0.0)) / rows.total
        return np.asarray(mean + error * np.random.default_rng(seed).standard_normal(self.measure.resamples))


class RatioSums(MeasureSums[RatioMeasure]):
    """A ratio of two means over rows."""

    streams, base = "rows", RatioMeasure

    def shape(self, k: int) -> tuple[int, ...]:
        return (5,)

    def add_up(self, p: Predictions, weights: Array | None) -> Array:
        return ratio_sums(*self.measure.terms(p), weights)

    def check(self, sums: Array, state: State) -> None:
        check_ratio(self.name, sums, state)

    def value(self, sums: Array, rows: Totals) -> float:
        return self.measure.divide(*sums[:2])

    def draws(self, sums: Array, rows: Totals, seed: int) -> Array:
        noise = np.random.default_rng(seed).standard_normal(self.measure.resamples)
        return np.asarray(self.value(sums, rows) + self._error(sums) * noise)

    def estimate(self, sums: Array, rows: Totals, seed: int, *, subtracted: bool = False) -> Estimate:
        if subtracted:
            return super().estimate(sums, rows, seed)
        if (value := self.value(sums, rows)) <= 0:
            return Estimate(value=value, reason=ZERO_RATIO)
        noise = ratio_noise(value, self._error(sums), max(int(rows.total**2 / rows.square) - 1, 1))
        return Estimate(value=value, noise=noise, bounds=self.measure.bounds)

    def _error(self, sums: Array) -> float:
        """The standard error of a ratio, from the covariance of numerators and denominators."""
        above, below, square, cross, square_below = sums
        ratio = self.measure.divide(above, below)
        return float(np.sqrt(max(square - 2 * ratio * cross + ratio**2 * square_below, 0.0)) / below)


class AnyBinSums(MeasureSums[B]):
    """A number read off equal-width bins. Bins (and classes) count as independent."""

    streams = "bins"

    def check(self, sums: Array, state: State) -> None:
        check_bins(self.name, sums, state)

    def value(self, sums: Array, rows: Totals) -> float:
        return self.measure.from_bins(_bins(sums, rows))

    def estimate(self, sums: Array, rows: Totals, seed: int, *, subtracted: bool = False) -> Estimate:
        bins, gap = _bins(sums, rows), ((sums[1] - sums[2]) / rows.total).ravel()
        residuals = Sampling(n=rows.n, seed=seed).independent(gap, _bin_errors(sums, rows))
        noise = self.measure.noise_of(bins, residuals)
        if noise is None:
            return super().estimate(sums, rows, seed)
        return Estimate(value=self.measure.from_bins(bins), noise=noise, bounds=self.measure.bounds)

    def draws(self, sums: Array, rows: Totals, seed: int) -> Array:
        rng, (count, score, outcomes) = np.random.default_rng(seed), sums[:3]
        noise = _bin_errors(sums, rows).reshape(count.shape) * rows.total
        values = []
        for _ in range(self.measure.resamples):
            noisy = np.clip(outcomes + noise * rng.standard_normal(noise.shape), 0, count)
            values.append(self.measure.from_bins(_bins(np.stack([count, score, noisy]), rows)))
        return np.array(values)


class BinSums(AnyBinSums[BinnedMeasure]):
    """A number read off the bins of one score per row."""

    base = BinnedMeasure

    def __init__(self, measure: BinnedMeasure, spec: str) -> None:
        super().__init__(measure, spec)
        self.of_score = measure.score_name == "score"

    @property
    def name(self) -> str:
        return f"{self.measure.score_name}, {self.measure.bins} bins, {self.measure.closed}"

    def shape(self, k: int) -> tuple[int, ...]:
        return (SUMS, self.measure.bins)

    def add_up(self, p: Predictions, weights: Array | None) -> Array:
        scores, outcomes = self.measure.scores(p)
        return score_sums(scores, outcomes.astype(np.float64), weights, self.measure.bins, self.measure.closed)


class ClassBinSums(AnyBinSums[ClassMeasure]):
    """A number read off the bins of every class."""

    base = ClassMeasure

    @property
    def name(self) -> str:
        return f"classes, {self.measure.bins} bins, {self.measure.closed}"

    def shape(self, k: int) -> tuple[int, ...]:
        return (SUMS, k, self.measure.bins)

    def add_up(self, p: Predictions, weights: Array | None) -> Array:
        return class_sums(p, weights, self.measure)


class RankingSums(MeasureSums[OfCurve]):
    """A number read off a fine histogram of scores, in which the order inside a bin is not known."""

    streams, base, noise = "ranking", OfCurve, "counts"

    @property
    def name(self) -> str:
        scores = self.measure.score_name
        return RANKING if scores == "score" else f"{RANKING}, {scores}"

    def shape(self, k: int) -> tuple[int, ...]:
        return (4, FINE)

    def add_up(self, p: Predictions, weights: Array | None) -> Array:
        scores, outcomes = self.measure.scores(p)
        return fine_sums(scores, outcomes.astype(np.float64), weights)

    def check(self, sums: Array, state: State) -> None:
        check_ranking(self.name, sums, state)

    def value(self, sums: Array, rows: Totals) -> float:
        return self.value_and_margin(sums, rows)[0]

    def value_and_margin(self, sums: Array, rows: Totals) -> tuple[float, float | None]:
        return ranking_value(self.measure, sums)

    def draws(self, sums: Array, rows: Totals, seed: int) -> Array:
        return ranking_draws(self.measure, sums, np.random.default_rng(seed), counts=not rows.weighted)


KINDS: tuple[type[MeasureSums[Any]], ...] = (RowSums, RatioSums, BinSums, ClassBinSums, RankingSums)


def sums_of(m: Measure, spec: str) -> MeasureSums[Any] | None:
    """The sums of a measure, by what it says itself; None where it needs all rows at once."""
    if m.streamed_from == "no":
        return None
    kinds = [kind for kind in KINDS if kind.streams == m.streamed_from]
    for kind in kinds:
        if isinstance(m, kind.base):
            return kind(m, spec)
    raise InputError(
        f"stream of {spec}",
        expected=f"a subclass of {' or '.join(kind.base.__name__ for kind in kinds)}, by streams = '{m.streamed_from}'",
        got=type(m).__name__,
        fix="subclass one of these, or leave streams out",
    )


def _bins(sums: Array, rows: Totals) -> Bins:
    worth = 1.0 if rows.counts else rows.total / rows.square
    return Bins(sums[0], sums[1], sums[2], rows.total, worth)


def _bin_errors(sums: Array, rows: Totals) -> Array:
    """The standard error of the sum of residuals of each bin, over the total weight."""
    _, score, outcomes, square, cross = (part.ravel() for part in sums)
    gap = (score - outcomes) / rows.total
    return np.asarray(np.sqrt(np.maximum(square - 2 * gap * cross + gap**2 * rows.square, 0.0)) / rows.total)
