"""Emax: largest distance of a smooth calibration curve from the diagonal."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.arrays import Array
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions  # noqa: F401  used by the example
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import max_noise
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._of_loess import LoessMeasure


@dataclass(frozen=True)
class EMax(LoessMeasure):
    """Largest distance between a score and a smooth curve of the outcomes (loess), over the rows.

    It is read where the curve is most uncertain, at the lowest or highest scores: one row decides it.

    >>> p = Predictions.binary([0.2, 0.2, 0.2, 0.2, 0.6, 0.6], [0, 1, 0, 1, 1, 1])
    >>> round(EMax()(p), 4)  # all rows with a score of 0.6 are positive
    0.4
    """

    title: ClassVar[str] = "Largest calibration error of a smooth curve (Emax)"
    meaning: ClassVar[str] = "No row is off by more than this, by a smooth curve."
    covers: ClassVar[str] = "a nominal 95 % held the truth in 95 to 100 % of trials"
    summary: ClassVar[str] = "largest"

    def of(self, gaps: Array, curve: Curve) -> float:
        return min(float(gaps.max()), 1.0)  # a curve of few rows may leave [0, 1], and no rate does

    def noise_of(self, field: NoisyValues, share: Array) -> Draws:
        return max_noise(field, unequal=True)  # rows at either end of the scores are few
