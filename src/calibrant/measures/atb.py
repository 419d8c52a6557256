"""Averaged two-bin calibration error: a measure that no model can improve by being less sure than it is."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.residual_noise import l2_noise
from calibrant.core.statistics.sampling import NoisyValues, Sampling
from calibrant.measures._base import CurveMeasure
from calibrant.measures._fields import CELLS, cells_of_equal_size


@dataclass(frozen=True)
class ATB(CurveMeasure):
    """Squared gaps of the rows below and above a threshold, averaged over all thresholds from 0 to 1.

    In expectation over the outcomes only the true probabilities minimise it. It is a square: its root is on the scale
    of the gaps. It needs the order of all rows, so it is not computed from sums.

    >>> p = Predictions.binary([0.1, 0.3, 0.4, 0.8], [0, 1, 0, 1])
    >>> round(ATB()(p), 6)
    0.01075
    """

    title: ClassVar[str] = "Averaged two-bin calibration error"
    blind_to: ClassVar[str] = "errors that change their sign many times from low to high scores"
    meaning: ClassVar[str] = "Squared gap of the rows on either side of a threshold, averaged over all thresholds."
    reference: ClassVar[str] = "Hartline, Hu, Wu, COLT 2026"
    of_calibration: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)

    def from_curve(self, curve: Curve) -> float:
        *_, (_, gaps) = curve.gap_blocks()
        whole = gaps[-1] / curve.total
        area, at, below = 0.0, 0.0, 0.0  # up to a threshold, and the gap of the rows below it
        for scores, gaps in curve.gap_blocks():
            running = np.append(below, gaps / curve.total)
            area += np.diff(scores, prepend=at) @ (running[:-1] ** 2 + (whole - running[:-1]) ** 2)
            at, below = scores[-1], running[-1]
        return float(area + (1.0 - at) * below**2)  # above the highest score nothing is left

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        value, curve = self(p), self.curve(p)
        cells = min(CELLS, curve.n)
        cell = cells_of_equal_size(curve.n, cells)
        sums = rows.gather(lambda: curve.order, cell, curve.residuals, cells)
        ends = curve.scores[np.searchsorted(cell, np.arange(cells, dtype=cell.dtype), side="right") - 1]
        root = np.sqrt(np.diff(ends, prepend=0.0, append=1.0))  # of the thresholds at which each running sum holds
        below = NoisyValues(
            np.append(0.0, np.cumsum(sums.value)), np.cumsum(np.pad(sums.noise, ((0, 0), (1, 0))), axis=1)
        )
        above = NoisyValues(below.value[-1] - below.value, below.noise[:, -1:] - below.noise)
        sides = [side.scale(root) for side in (below, above)]
        field = NoisyValues(
            *(np.concatenate(parts, axis=-1) for parts in zip(*((s.value, s.noise) for s in sides), strict=True))
        )
        return self.with_noise(value, l2_noise(field, float(np.sqrt(value))).square())

    @property
    def definition(self) -> str:
        return "squared top-label gaps (sums over n) below and above a threshold, integrated over all thresholds"
