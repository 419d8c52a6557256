"""E50: median of the distances of a smooth calibration curve from the diagonal."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.arrays import Array
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions  # noqa: F401  used by the example
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import quantile_noise
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._of_loess import LoessMeasure, row_quantile


@dataclass(frozen=True)
class E50(LoessMeasure):
    """Median over the rows of the distance between the score and a smooth curve of the outcomes (loess).

    Half of the rows may be far worse: read it beside `e90` and `emax`.

    >>> p = Predictions.binary([0.2, 0.2, 0.2, 0.2, 0.6, 0.6], [0, 1, 0, 1, 1, 1])
    >>> round(E50()(p), 4)  # four rows at a distance of 0.3, two at 0.4
    0.3
    """

    title: ClassVar[str] = "Median calibration error (E50)"
    meaning: ClassVar[str] = "Half of the rows are off by less than this, by a smooth curve."
    covers: ClassVar[str] = "a nominal 95 % held the truth in 98 to 100 % of trials"
    summary: ClassVar[str] = "median"

    def of(self, gaps: Array, curve: Curve) -> float:
        return row_quantile(gaps, curve, 0.5)

    def noise_of(self, field: NoisyValues, share: Array) -> Draws:
        return quantile_noise(field, share, 0.5)
