"""Cutoff calibration error: the largest gap of any interval of scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.residual_noise import range_noise
from calibrant.core.statistics.sampling import NoisyValues, Sampling
from calibrant.measures._base import CurveMeasure, Unit
from calibrant.measures._fields import running


@dataclass(frozen=True)
class Cutoff(CurveMeasure):
    """Largest gap that the rows of any interval of scores add to the whole, over all intervals.

    A gap counts by the rows that have it: a rare score that is far off adds little. It is between `ks` and twice that.

    >>> p = Predictions.binary([0.9, 0.6, 0.3], [1, 0, 1])
    >>> round(Cutoff()(p), 4)  # sums of score minus outcome: -0.7, -0.1, -0.2; the score 0.3 alone makes 0.7 / 3
    0.2333
    """

    title: ClassVar[str] = "Cutoff calibration error"
    unit: ClassVar[Unit] = "percent"
    meaning: ClassVar[str] = "The most that rows between two levels of confidence add to the gap, over all levels."
    reference: ClassVar[str] = "Rossellini et al., 2025"
    of_calibration: ClassVar[bool] = True

    def from_curve(self, curve: Curve) -> float:
        ends = curve.group_ends
        walk = np.append(0.0, curve.cum_scores[ends] - curve.outcome_sum[ends])
        return float(np.ptp(walk) / curve.total)

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        value, sums = self(p), running(self.curve(p), rows)
        walk = NoisyValues(np.append(0.0, sums.value), np.pad(sums.noise, ((0, 0), (1, 0))))
        return self.with_noise(value, range_noise(walk).at(value))

    @property
    def definition(self) -> str:
        return "largest top-label gap (sum over n) of the rows in an interval of scores, over all intervals"
