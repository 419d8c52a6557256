"""Maximum mean calibration error: a kernel measure, exact without an n x n matrix."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.config.bounds import at_least
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.residual_noise import l2_noise
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures._base import CurveMeasure, Unit
from calibrant.measures._fields import narrow_cells


@dataclass(frozen=True)
class MMCE(CurveMeasure):
    """Root of the mean of r_i r_j exp(-|c_i - c_j| / width) over all pairs, r = correct - confidence.

    Its size depends on the width; the diagonal is included, so noise alone gives about 1 / sqrt(n) of the residual.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(MMCE()(p), 4)  # r = 0.1, -0.6: sqrt((0.01 + 0.36 - 2 * 0.06 * exp(-0.75)) / 4)
    0.2799
    """

    width: float = 0.4

    title: ClassVar[str] = "Maximum mean calibration error"
    unit: ClassVar[Unit] = "percent"
    reference: ClassVar[str] = "Kumar, Sarawagi, Jain, ICML 2018"
    of_calibration: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("width", self.width, 0.002)  # exp(1 / width) must stay finite

    def from_curve(self, curve: Curve) -> float:
        # On sorted confidences the kernel factors: exp(-(c_j - c_i) / w) = exp(c_i / w) / exp(c_j / w) for i < j.
        r = (curve.outcomes - curve.scores) * curve.weights
        rise = np.exp((curve.scores - curve.scores[0]) / self.width)
        before = np.cumsum(r * rise)
        pairs = r[1:] @ (before[:-1] / rise[1:])
        return float(np.sqrt(max(r @ r + 2 * pairs, 0.0)) / curve.total)

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        at, _, sums = narrow_cells(self.curve(p), rows)
        kernel = np.exp(-np.abs(at[:, None] - at) / self.width)
        field = sums.through(np.linalg.cholesky(kernel))  # its squares add up to the kernel mean
        value = self(p)
        return self.with_noise(value, l2_noise(field, value))

    @property
    def definition(self) -> str:
        kernel = f"Laplacian kernel of width {self.width:g}"
        return f"root of the kernel mean of top-label residuals, {kernel}, diagonal included"
