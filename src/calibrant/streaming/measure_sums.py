"""Sums of a measure in a stream: which it needs, and its value and noise from them. One class a kind of sums."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from calibrant.core.arrays import Array, Integers
from calibrant.core.curves.curve import Bins
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws, Estimate
from calibrant.core.statistics.sampling import DRAWS as SAMPLING_DRAWS
from calibrant.core.statistics.sampling import Entries, NoisyValues, Sampling
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
from calibrant.streaming.histogram_ranking import ranking_noise, ranking_value
from calibrant.streaming.sums import (
    FINE,
    SUMS,
    bin_of,
    class_sums,
    cluster_sums,
    coarsen,
    fine_sums,
    ratio_sums,
    row_sums,
    score_sums,
)

M = TypeVar("M", bound=Measure)
B = TypeVar("B", bound=BinOptions)

RANKING = "ranking"
POSITIVE = f"{RANKING}, positive class"
MOST_CELLS = 256  # bins whose sums are kept in pairs, where rows come in clusters


class Totals(Protocol):
    """Sums over all rows, and the sums of every measure by name; an accumulator has them."""

    @property
    def n(self) -> int: ...
    @property
    def total(self) -> float:
        """The sum of the weights."""

    @property
    def square(self) -> float:
        """The sum of the squared weights of rows."""

    @property
    def unit_square(self) -> float:
        """The sum of the squared weights of units: of clusters, or of rows."""

    @property
    def units(self) -> int:
        """The number of clusters, and of rows without."""

    @property
    def weighted(self) -> bool: ...
    @property
    def clustered(self) -> bool: ...
    @property
    def counts(self) -> bool:
        """Whether every weight is a whole number."""

    @property
    def sums(self) -> dict[str, Array]: ...


class MeasureSums(ABC, Generic[M]):
    """A measure and the sums it is computed from."""

    streams: ClassVar[Streams]  # what measures of this kind say in their `streams`
    base: ClassVar[type[Measure]]  # and what they are
    noise: ClassVar[str] = "sums"  # what the draws of an interval disturb

    def __init__(self, measure: M, spec: str) -> None:
        self.measure, self.spec = measure, spec

    @property
    def name(self) -> str:
        """The name of the sums; measures with the same name share them."""
        return self.spec

    @abstractmethod
    def shapes(self, k: int) -> dict[str, tuple[int, ...]]:
        """The sums by name, and their shapes."""

    def more_shapes(self, k: int) -> dict[str, tuple[int, ...]]:
        """Those of sums that only rows with weights or in clusters need."""
        return {}

    @abstractmethod
    def add_up(self, p: Predictions, weights: Array | None, clusters: Integers | None) -> dict[str, Array]:
        """Compute the sums over a batch, which holds whole clusters."""

    @abstractmethod
    def value(self, rows: Totals) -> float: ...

    def estimate(self, rows: Totals, seed: int, *, subtracted: bool = False) -> Estimate:
        """The value with the noise of the sums, and with a margin for what sums do not know of rows."""
        value, margin = self.value_and_margin(rows)
        if reason := self.obstacle(rows):
            return Estimate(value=value, margin=margin, reason=reason)
        draws = self.draws(rows, seed)
        method = f"noise of the {self.noise}, {len(draws):,} draws"
        freedom = max(rows.total**2 / rows.unit_square - 1, 1.0) if rows.clustered else np.inf
        noise = Draws.from_resamples(value, draws, method, freedom=freedom)
        return Estimate(value=value, noise=noise, bounds=self.measure.bounds, margin=margin)

    def obstacle(self, rows: Totals) -> str | None:
        """Why the noise of these sums is not known; None where it is."""
        return None

    @abstractmethod
    def draws(self, rows: Totals, seed: int) -> Array:
        """Values under the sampling noise of the sums, with the variance that a bootstrap of the rows would give."""

    def value_and_margin(self, rows: Totals) -> tuple[float, float | None]:
        """The value, and its largest error because sums know less than rows; None where it is exact."""
        return self.value(rows), None


class RowSums(MeasureSums[RowMeasure]):
    """A mean of one number per row."""

    streams, base = "rows", RowMeasure

    def shapes(self, k: int) -> dict[str, tuple[int, ...]]:
        return {self.name: (3,)}

    def add_up(self, p: Predictions, weights: Array | None, clusters: Integers | None) -> dict[str, Array]:
        return {self.name: row_sums(self.measure.rows(p).astype(np.float64), weights, clusters)}

    def value(self, rows: Totals) -> float:
        return float(rows.sums[self.name][0] / rows.total)

    def draws(self, rows: Totals, seed: int) -> Array:
        noise = np.random.default_rng(seed).standard_normal(self.measure.resamples)
        return np.asarray(self.value(rows) + mean_error(rows.sums[self.name], rows) * noise)


class RatioSums(MeasureSums[RatioMeasure]):
    """A ratio of two means of one number per row."""

    streams, base = "rows", RatioMeasure

    def shapes(self, k: int) -> dict[str, tuple[int, ...]]:
        return {self.name: (5,)}

    def add_up(self, p: Predictions, weights: Array | None, clusters: Integers | None) -> dict[str, Array]:
        return {self.name: ratio_sums(*self.measure.terms(p), weights, clusters)}

    def value(self, rows: Totals) -> float:
        return self.measure.divide(*rows.sums[self.name][:2])

    def draws(self, rows: Totals, seed: int) -> Array:
        noise = np.random.default_rng(seed).standard_normal(self.measure.resamples)
        return np.asarray(self.value(rows) + self._error(rows) * noise)

    def estimate(self, rows: Totals, seed: int, *, subtracted: bool = False) -> Estimate:
        if subtracted:
            return super().estimate(rows, seed)
        if (value := self.value(rows)) <= 0:
            return Estimate(value=value, reason=ZERO_RATIO)
        noise = ratio_noise(value, self._error(rows), max(int(rows.total**2 / rows.unit_square) - 1, 1))
        return Estimate(value=value, noise=noise, bounds=self.measure.bounds)

    def _error(self, rows: Totals) -> float:
        """The standard error of a ratio, from the covariance of numerators and denominators."""
        above, below, square, cross, square_below = rows.sums[self.name]
        ratio = self.measure.divide(above, below)
        squares = max(square - 2 * ratio * cross + ratio**2 * square_below, 0.0)
        return float(np.sqrt(squares * _few_clusters(rows)) / below)


class AnyBinSums(MeasureSums[B]):
    """A number read off equal-width bins. Bins (and classes) count as independent, unless rows come in clusters."""

    streams = "bins"

    @abstractmethod
    def cells(self, k: int) -> tuple[int, ...]:
        """The shape of the bins."""

    @abstractmethod
    def row_sums(self, p: Predictions, weights: Array | None) -> Array:
        """The sums over a batch, with rows as units, (5, *cells)."""

    @abstractmethod
    def entries(self, p: Predictions) -> Iterable[Entries]:
        """Row, cell and residual of every score."""

    def shapes(self, k: int) -> dict[str, tuple[int, ...]]:
        return {self.name: (SUMS, *self.cells(k))}

    def more_shapes(self, k: int) -> dict[str, tuple[int, ...]]:
        count = int(np.prod(self.cells(k)))
        return {self._pairs: (count, count)} if count <= MOST_CELLS else {}

    def add_up(self, p: Predictions, weights: Array | None, clusters: Integers | None) -> dict[str, Array]:
        sums, count = self.row_sums(p, weights), int(np.prod(self.cells(p.k)))
        if clusters is None or count > MOST_CELLS:
            return {self.name: sums}
        products = cluster_sums(self.entries(p), weights, clusters, count)
        pairs, cross = products[:-1], products[-1]
        sums[3], sums[4] = np.diag(pairs).reshape(sums[3].shape), cross.reshape(sums[4].shape)
        return {self.name: sums, self._pairs: pairs * (1 - np.eye(count))}

    def value(self, rows: Totals) -> float:
        return self.measure.from_bins(self._bins(rows))

    def obstacle(self, rows: Totals) -> str | None:
        if not rows.clustered or self._pairs in rows.sums:
            return None
        return f"rows came in clusters, whose noise sums keep for at most {MOST_CELLS} bins"

    def estimate(self, rows: Totals, seed: int, *, subtracted: bool = False) -> Estimate:
        if self.obstacle(rows):
            return super().estimate(rows, seed)
        bins, sums = self._bins(rows), rows.sums[self.name]
        gap = ((sums[1] - sums[2]) / rows.total).ravel()
        noise = self.measure.noise_of(bins, NoisyValues(gap, self._gap_noise(rows, seed, SAMPLING_DRAWS)))
        if noise is None:
            return super().estimate(rows, seed)
        return Estimate(value=self.measure.from_bins(bins), noise=noise, bounds=self.measure.bounds)

    def draws(self, rows: Totals, seed: int) -> Array:
        bins, values = self._bins(rows), []
        for noise in self._gap_noise(rows, seed, self.measure.resamples):
            noisy = bins.outcome_sum + noise.reshape(bins.count.shape) * rows.total
            values.append(self.measure.from_bins(replace(bins, outcome_sum=np.clip(noisy, 0, bins.count))))
        return np.array(values)

    @property
    def _pairs(self) -> str:
        return f"{self.name}, pairs"

    def _bins(self, rows: Totals) -> Bins:
        count, score, outcomes = rows.sums[self.name][:3]
        return Bins(count, score, outcomes, rows.total, 1.0 if rows.counts else rows.total / rows.square)

    def _gap_noise(self, rows: Totals, seed: int, draws: int) -> Array:
        """Draws of the noise of the sum of residuals of each bin over the total weight, (draws, bins)."""
        _, score, outcomes, square, cross = (part.ravel() for part in rows.sums[self.name])
        gap = (score - outcomes) / rows.total
        variance = square - 2 * gap * cross + gap**2 * rows.unit_square
        normal = Sampling(n=rows.n, seed=seed, draws=draws)
        if self._pairs not in rows.sums:
            return normal.independent(gap, np.sqrt(np.maximum(variance, 0.0)) / rows.total).noise
        pairs = rows.sums[self._pairs] + np.outer(gap, gap) * rows.unit_square
        pairs -= np.outer(gap, cross) + np.outer(cross, gap)
        np.fill_diagonal(pairs, variance)
        values, vectors = np.linalg.eigh(pairs * _few_clusters(rows))
        root = vectors * np.sqrt(np.maximum(values, 0.0)) / rows.total
        return np.asarray(normal.independent(gap, np.ones(len(gap))).noise @ root.T)


class BinSums(AnyBinSums[BinnedMeasure]):
    """A number read off the bins of one score per row."""

    base = BinnedMeasure

    @property
    def name(self) -> str:
        return f"{self.measure.score_name}, {self.measure.bins} bins, {self.measure.closed}"

    def cells(self, k: int) -> tuple[int, ...]:
        return (self.measure.bins,)

    def row_sums(self, p: Predictions, weights: Array | None) -> Array:
        scores, outcomes = self.measure.scores(p)
        return score_sums(scores, outcomes.astype(np.float64), weights, self.measure.bins, self.measure.closed)

    def entries(self, p: Predictions) -> Iterable[Entries]:
        scores, outcomes = self.measure.scores(p)
        yield np.arange(p.n), bin_of(scores, self.measure.bins, self.measure.closed), scores - outcomes


class ClassBinSums(AnyBinSums[ClassMeasure]):
    """A number read off the bins of every class."""

    base = ClassMeasure

    @property
    def name(self) -> str:
        return f"classes, {self.measure.bins} bins, {self.measure.closed}"

    def cells(self, k: int) -> tuple[int, ...]:
        return (k, self.measure.bins)

    def row_sums(self, p: Predictions, weights: Array | None) -> Array:
        return class_sums(p, weights, self.measure)

    def entries(self, p: Predictions) -> Iterable[Entries]:
        return self.measure.entries(p)


class RankingSums(MeasureSums[OfCurve]):
    """A number read off a fine histogram of scores, in which the order inside a bin is not known."""

    streams, base, noise = "ranking", OfCurve, "counts"

    @property
    def name(self) -> str:
        scores = self.measure.score_name
        return RANKING if scores == "score" else f"{RANKING}, {scores}"

    def shapes(self, k: int) -> dict[str, tuple[int, ...]]:
        return {self.name: (2, FINE)}

    def more_shapes(self, k: int) -> dict[str, tuple[int, ...]]:
        return {self._squares: (2, FINE)}

    def add_up(self, p: Predictions, weights: Array | None, clusters: Integers | None) -> dict[str, Array]:
        scores, outcomes = self.measure.scores(p)
        sums = {self.name: fine_sums(scores, outcomes.astype(np.float64), weights)}
        if weights is not None:  # of rows without weights, squares are what sums are
            sums[self._squares] = fine_sums(scores, outcomes.astype(np.float64), weights**2 - weights)
        return sums

    def obstacle(self, rows: Totals) -> str | None:
        return "rows came in clusters, whose noise a histogram of scores does not keep" if rows.clustered else None

    def value(self, rows: Totals) -> float:
        return self.value_and_margin(rows)[0]

    def value_and_margin(self, rows: Totals) -> tuple[float, float | None]:
        return ranking_value(self.measure, rows.sums[self.name])

    def draws(self, rows: Totals, seed: int) -> Array:
        sums, rng = coarsen(rows.sums[self.name]), np.random.default_rng(seed)
        squares = sums + coarsen(rows.sums[self._squares]) if rows.weighted else None
        return self.value(rows) + ranking_noise(self.measure, sums, squares, rng)

    @property
    def _squares(self) -> str:
        return f"{self.name}, squares"


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


def mean_error(sums: Array, rows: Totals) -> float:
    """The standard error of a mean of one number per row, from its `row_sums`."""
    mean = sums[0] / rows.total
    squares = max(sums[1] - 2 * mean * sums[2] + mean**2 * rows.unit_square, 0.0)
    return float(np.sqrt(squares * _few_clusters(rows)) / rows.total)


def _few_clusters(rows: Totals) -> float:
    """The factor by which squares over few clusters fall short of their variance."""
    return rows.units / max(rows.units - 1, 1) if rows.clustered else 1.0
