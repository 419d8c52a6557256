"""Integrated calibration index: mean distance of a smooth calibration curve from the diagonal."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.arrays import Array
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions  # noqa: F401  used by the example
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import l1_noise
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._of_loess import LoessMeasure


@dataclass(frozen=True)
class ICI(LoessMeasure):
    """Mean over the rows of the distance between the score and a smooth curve of the outcomes (loess).

    A wide span smooths local errors away; noise alone makes it positive, the more the fewer the rows.

    >>> p = Predictions.binary([0.2, 0.2, 0.2, 0.2, 0.6, 0.6], [0, 1, 0, 1, 1, 1])
    >>> round(ICI()(p), 4)  # two scores, so the curve is their share of positives: (4 * 0.3 + 2 * 0.4) / 6
    0.3333
    """

    title: ClassVar[str] = "Integrated calibration index (ICI)"
    other_names: ClassVar[tuple[str, ...]] = ("eavg",)
    blind_to: ClassVar[str] = "errors that a smooth curve does not follow"
    meaning: ClassVar[str] = "How far what it says is from how often it is right, on average, by a smooth curve."
    meaning_binary: ClassVar[str] = "How far P(positive) is from the share of positives, on average, by a smooth curve."
    summary: ClassVar[str] = "mean"

    def of(self, gaps: Array, curve: Curve) -> float:
        return float(curve.weights @ gaps / curve.total)

    def noise_of(self, field: NoisyValues, share: Array) -> Draws:
        return l1_noise(field.scale(share))
