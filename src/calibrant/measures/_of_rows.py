"""Measures of rows: the mean of one number per row."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.predictions import Predictions
from calibrant.measures._measure import Measure, Streams


@dataclass(frozen=True)
class RowMeasure(Measure):
    """The mean of one number per row."""

    streams: ClassVar[Streams] = "rows"

    def rows(self, p: Predictions) -> Array:
        raise TypeError(f"{type(self).__name__} does not say its value per row: define rows")

    def __call__(self, p: Predictions) -> float:
        return p.mean(self.rows(p))

    def resample(self, p: Predictions, counts: Ints) -> Array:
        weights = counts if p.weights is None else counts * p.weights
        return np.asarray(weights @ self.rows(p) / weights.sum(axis=1))
