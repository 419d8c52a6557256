"""Measures of a smooth calibration curve (loess): how far it is from the diagonal, over the rows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import at_least
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.loess import DIRECT, gather_points, loess_gaps, neighbourhoods, smoother
from calibrant.core.curves.weighted import is_whole
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws, Estimate
from calibrant.core.statistics.sampling import NoisyValues, Sampling
from calibrant.measures._base import CurveMeasure, Unit

FIELD = 150  # cells of equal width, and as many of equal weight, for the noise of the curve


@dataclass(frozen=True)
class LoessMeasure(CurveMeasure):
    """A summary of the distances between each score and the smooth curve of outcomes at that score."""

    span: float = 0.75

    unit: ClassVar[Unit] = "percent"
    reference: ClassVar[str] = "Austin, Steyerberg, Statistics in Medicine 2019"
    of_calibration: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    resamples: ClassVar[int] = 200
    summary: ClassVar[str]  # of the distances, in words

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("span", self.span, 0.01)
        if self.span > 1:
            raise InputError("span", expected="a share of the rows, at most 1", got=f"{self.span:g}", fix="use 0.75")

    def of(self, gaps: Array, curve: Curve) -> float:
        raise TypeError(f"{type(self).__name__} does not say how to summarise the distances: define from_bins")

    def noise_of(self, field: NoisyValues, share: Array) -> Draws:
        raise TypeError(f"{type(self).__name__} does not say how noisy it is: define noise_of")

    def from_curve(self, curve: Curve) -> float:
        return self.of(np.abs(loess_gaps(curve, self.span)), curve)

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        value, curve = self(p), self.curve(p)
        points = gather_points(curve, 2 * FIELD, FIELD)
        share = points.weight / curve.total
        sums = rows.gather(lambda: curve.order, points.point_of, curve.outcomes - curve.scores, len(share))
        at = np.concatenate([curve.scores[:1], points.at, curve.scores[-1:]])  # the ends stand for no rows
        matrix = smoother(points, at, neighbourhoods(curve, at, self.span))
        field = sums.scale(np.divide(1, share, out=np.zeros_like(share), where=share > 0)).through(matrix.T)
        return self.with_noise(value, self.noise_of(field, np.pad(share, 1)).at(value))

    @property
    def definition(self) -> str:
        how = f"loess: local quadratic, tricube, span {self.span:g}"
        many = f"interpolated above {DIRECT:,} distinct scores"
        return f"{self.summary} top-label distance of a smooth curve from the diagonal ({how}; {many})"


def row_quantile(values: Array, curve: Curve, level: float) -> float:
    """The level below which a share of the rows lies, by their weights: interpolated between rows, as in R."""
    if is_whole(curve.weights):
        order = np.argsort(values)
        ends, place = np.cumsum(curve.weights[order]), level * (curve.total - 1)
        low, high = (values[order[np.searchsorted(ends, at, side="right")]] for at in (np.floor(place), np.ceil(place)))
        return float(low + (place - np.floor(place)) * (high - low))
    order = np.argsort(values)
    ends = np.cumsum(curve.weights[order])
    return float(values[order[np.searchsorted(ends, level * ends[-1] * (1 - 1e-12))]])
