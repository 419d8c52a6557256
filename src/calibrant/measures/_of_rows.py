"""Measures of rows: the mean of one number per row, or the ratio of two such means."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.catalogue import spec_of
from calibrant.core.errors import UndefinedMeasureError
from calibrant.core.predictions import Predictions
from calibrant.measures._measure import Measure, Streams


@dataclass(frozen=True)
class RowMeasure(Measure):
    """The mean of one number per row."""

    streams: ClassVar[Streams] = "rows"

    def rows(self, p: Predictions) -> Array:
        """The number of each row, (n,)."""
        raise TypeError(f"{type(self).__name__} does not say its value per row: define rows")

    def numbers(self, p: Predictions) -> Array:
        """The number of each row, (n,); of very many rows part by part, where no row needs the others."""
        return p.by_parts(self.rows) if self.streamed_from == "rows" else self.rows(p)

    def __call__(self, p: Predictions) -> float:
        return p.mean(self.numbers(p))

    def resample(self, p: Predictions, counts: Ints) -> Array:
        weights = counts if p.weights is None else counts * p.weights
        return np.asarray(weights @ self.numbers(p) / weights.sum(axis=1))


@dataclass(frozen=True)
class RatioMeasure(Measure):
    """The mean of one number per row over the mean of another."""

    streams: ClassVar[Streams] = "rows"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    undefined_for: ClassVar[str] = "rows whose denominator is 0"
    of_ratio: ClassVar[bool] = True

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

    def influence(self, p: Predictions) -> Array | None:
        (above, below), w = self.terms(p), np.ones(p.n) if p.weights is None else p.weights
        total = float(w @ below)
        return np.asarray(w * (above - float(w @ above) / total * below) / total)

    def resample(self, p: Predictions, counts: Ints) -> Array:
        weights = counts if p.weights is None else counts * p.weights
        above, below = (weights @ part for part in self.terms(p))
        return np.asarray(np.divide(above, below, out=np.full(len(counts), np.nan), where=below > 0))
