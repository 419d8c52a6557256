"""Measures of rows: the mean of one number per row, or the ratio of two such means."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.catalogue import spec_of
from calibrant.core.errors import UndefinedMeasureError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate, Normal, Parts
from calibrant.core.statistics.sampling import PARTS, Sampling
from calibrant.measures._measure import Measure, Streams

ROBUST = "normal, robust standard error"
ZERO_RATIO = "a ratio of 0 has no interval: not one event was seen"


@dataclass(frozen=True)
class RowMeasure(Measure):
    """The mean of one number per row."""

    streams: ClassVar[Streams] = "rows"

    def rows(self, p: Predictions) -> Array:
        """The number of each row, (n,)."""
        raise TypeError(f"{type(self).__name__} does not say its value per row: define rows")

    def numbers(self, p: Predictions) -> Array:
        """The number of each row, (n,); of very many rows part by part, where no row needs the others."""
        return p.map_chunks(self.rows) if self.streamed_from == "rows" else self.rows(p)

    def __call__(self, p: Predictions) -> float:
        return p.mean(self.numbers(p))

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        if not self._is_mean:
            return super().estimate(p, rows)
        numbers = self.numbers(p)
        return self.mean_estimate(p, numbers, p.mean(numbers), rows)

    def mean_estimate(self, p: Predictions, numbers: Array, value: float, rows: Sampling) -> Estimate:
        """The estimate of the mean of the number of each row."""
        if rows.in_parts and not self.of_calibration:
            rows.step(PARTS)
            return self.with_noise(value, Parts(values=rows.means_of_parts(numbers)))
        return self.resampled_estimate(p, value, rows)

    def resample(self, p: Predictions, counts: Ints) -> Array:
        weights = counts if p.weights is None else counts * p.weights
        return np.asarray(weights @ self.numbers(p) / weights.sum(axis=1))

    def _values_on_resamples(self, p: Predictions, rows: Sampling) -> Array:
        if not self._is_mean:
            return super()._values_on_resamples(p, rows)
        return rows.resample_means(self.numbers(p), self.resamples)

    @property
    def _is_mean(self) -> bool:
        """Whether the value is the mean; a subclass may make something else of it."""
        own = type(self)
        return own.__call__ is RowMeasure.__call__ and own.resample is RowMeasure.resample


@dataclass(frozen=True)
class RatioMeasure(Measure):
    """The mean of one number per row over the mean of another."""

    streams: ClassVar[Streams] = "rows"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    undefined_for: ClassVar[str] = "rows whose denominator is 0"

    def terms(self, p: Predictions) -> tuple[Array, Array]:
        """Numerator and denominator of each row."""
        raise TypeError(f"{type(self).__name__} does not say what it divides: define terms")

    def __call__(self, p: Predictions) -> float:
        return self.divide(*map(p.mean, self.terms(p)))

    def divide(self, above: float, below: float) -> float:
        """The ratio of two sums."""
        if below <= 0:
            expected, fix = "a denominator above 0", "give the scores of a model that expects something"
            raise UndefinedMeasureError(spec_of(self), expected=expected, got="0", fix=fix)
        return float(above / below)

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        value = self(p)
        if rows.subtracted:
            return self.resampled_estimate(p, value, rows)
        if value <= 0:
            return Estimate(value=value, reason=ZERO_RATIO)
        (above, below), w = self.terms(p), np.ones(p.n) if p.weights is None else p.weights
        total = float(w @ below)
        error = rows.error(w * (above - float(w @ above) / total * below) / total)
        return self.with_noise(value, ratio_noise(value, error, rows.freedom))

    def resample(self, p: Predictions, counts: Ints) -> Array:
        weights = counts if p.weights is None else counts * p.weights
        above, below = (weights @ part for part in self.terms(p))
        return np.asarray(np.divide(above, below, out=np.full(len(counts), np.nan), where=below > 0))


def ratio_noise(value: float, error: float, freedom: float) -> Normal:
    """The noise of a ratio, symmetric in its logarithm."""
    return Normal(error=error / value, freedom=freedom, link="log", method=ROBUST)
