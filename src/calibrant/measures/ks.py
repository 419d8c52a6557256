"""Kolmogorov-Smirnov calibration error: no bins at all."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curve import Curve
from calibrant.measures._base import CurveMeasure


@dataclass(frozen=True)
class KS(CurveMeasure):
    """Largest gap between the running sums of confidence and of correctness, sorted by confidence.

    Errors of opposite sign cancel in the running sum, so it is never above an ECE with fine bins.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(KS()(p), 3)  # running gaps: 0.6 / 2, (0.6 - 0.1) / 2
    0.3
    """

    title: ClassVar[str] = "KS calibration error"
    reference: ClassVar[str] = "Gupta et al., ICLR 2021"
    of_calibration: ClassVar[bool] = True

    def on(self, curve: Curve) -> float:
        ends = curve.group_ends
        return float(np.abs(curve.score_sum[ends] - curve.hit_sum[ends]).max() / curve.n)

    @property
    def definition(self) -> str:
        return "largest gap of the cumulative top-label curves, at the ends of tie groups"
