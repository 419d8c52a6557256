"""E90: 90 % quantile of the distances of a smooth calibration curve from the diagonal."""

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
class E90(LoessMeasure):
    """Distance between the score and a smooth curve of the outcomes (loess) that nine rows of ten stay below.

    The worst tenth is often where rows are few and the curve is noisy.

    >>> p = Predictions.binary([0.2, 0.2, 0.2, 0.2, 0.6, 0.6], [0, 1, 0, 1, 1, 1])
    >>> round(E90()(p), 4)  # two of six rows are at a distance of 0.4
    0.4
    """

    title: ClassVar[str] = "Calibration error of nine rows in ten (E90)"
    meaning: ClassVar[str] = "Nine rows of ten are off by less than this, by a smooth curve."
    covers: ClassVar[str] = "a nominal 95 % held the truth in 91 to 99 % of trials"
    summary: ClassVar[str] = "90 % quantile of the"

    def of(self, gaps: Array, curve: Curve) -> float:
        return row_quantile(gaps, curve, 0.9)

    def noise_of(self, field: NoisyValues, share: Array) -> Draws:
        return quantile_noise(field, share, 0.9)
