"""SECE: local accuracy by a Gaussian kernel instead of bins."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import at_least
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.kernels import REACH, gauss_sums
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.residual_noise import l1_noise
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures._base import CurveMeasure, Unit
from calibrant.measures._fields import local_gaps


@dataclass(frozen=True)
class SECE(CurveMeasure):
    """Gap between each confidence and the kernel-weighted accuracy around it.

    A sample without neighbours counts its own |a - c|. `form=eq5` is the formula as printed in the paper, which is
    not normalised, grows with n and is kept to show that; kernel sums are exact to about 1e-12.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(SECE()(p), 3)  # no neighbours within 0.01: (|1 - 0.9| + |0 - 0.6|) / 2
    0.35
    """

    h: float = 0.01
    form: Literal["normalised", "eq5"] = "normalised"
    leave_one_out: bool = False

    title: ClassVar[str] = "Smooth expected calibration error (SECE)"
    unit: ClassVar[Unit] = "percent"
    reference: ClassVar[str] = "Wang, Golebiowski, TMLR 2024 (gamma-Net)"
    of_calibration: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    resamples: ClassVar[int] = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("h", self.h, 1e-4)

    def from_curve(self, curve: Curve) -> float:
        c, a, w = curve.scores, curve.outcomes, curve.weights
        near, right = gauss_sums(c, np.stack([w, w * a]), self.h)
        if self.form == "eq5":
            return float(w @ np.abs(a * near - c) / curve.total)
        if self.leave_one_out:  # one of them: a row that occurs twice has itself as a neighbour
            near, right = _without_self(c, a, w, near - 1, right - a, self.h)
        return float(w @ np.abs(np.clip(right / near, 0, 1) - c) / curve.total)

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        if self.form == "eq5":
            return super().estimate(p, rows)
        value = self(p)
        return self.with_noise(value, l1_noise(local_gaps(self.curve(p), self.h, rows)).at(value))

    @property
    def definition(self) -> str:
        if self.form == "eq5":
            return f"SECE as printed in Eq. 5 (not normalised), Gaussian kernel h = {self.h:g}"
        own = "own sample left out" if self.leave_one_out else "own sample included"
        return f"top-label SECE, Nadaraya-Watson accuracy, Gaussian kernel h = {self.h:g}, {own}"


def _without_self(c: Array, a: Array, w: Array, near: Array, right: Array, h: float) -> tuple[Array, Array]:
    """Sums without the own sample, computed directly where little is left; the sample itself where nothing is."""
    for i in np.flatnonzero(near < 1e-4):
        window = slice(*c.searchsorted([c[i] - REACH * h, c[i] + REACH * h]))
        kernel = w[window] * np.exp(-0.5 * ((c[window] - c[i]) / h) ** 2)
        kernel[i - window.start] = max(w[i] - 1.0, 0.0)
        near[i], right[i] = kernel.sum(), kernel @ a[window]
    alone = near < 1e-12
    return np.where(alone, 1.0, near), np.where(alone, a, right)
