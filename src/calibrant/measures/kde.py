"""Calibration error by kernel density estimates (KDE-ECE)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import at_least
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.residual_noise import l1_noise
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures._base import CurveMeasure, Unit
from calibrant.measures._fields import smooth

LOW, HIGH, POINTS = -0.6, 1.6, 1 << 14
STEP = (HIGH - LOW) / (POINTS - 1)
NARROWEST = 0.001  # bandwidth when all confidences are (nearly) equal


@dataclass(frozen=True)
class KDE(CurveMeasure):
    """Gap between confidence and accuracy, both as smooth densities instead of bins.

    Linear binning on a grid of step 1.3e-4 and an FFT: relative error about (step / bandwidth)^2. The value
    depends on the bandwidth rule as an ECE depends on its bins.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], labels=[0, 1, 0])
    >>> 0 < KDE()(p) < 1
    True
    """

    norm: float = 1.0

    title: ClassVar[str] = "KDE calibration error"
    other_names: ClassVar[tuple[str, ...]] = ("kde_ece",)
    unit: ClassVar[Unit] = "percent"
    reference: ClassVar[str] = "Zhang, Kailkhura, Han, ICML 2020"
    of_calibration: ClassVar[bool] = True
    resamples: ClassVar[int] = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("norm", self.norm, 1)

    def from_curve(self, curve: Curve) -> float:
        bandwidth, right = _bandwidth(curve), curve.outcomes > 0
        t = np.linspace(LOW, HIGH, POINTS)
        f = _density(curve.scores, curve.weights, bandwidth, t)
        none = np.zeros_like(f)
        f_right = _density(curve.scores[right], curve.weights[right], bandwidth, t) if right.any() else none
        rate = curve.outcome_sum[-1] / curve.total
        dense = np.maximum(f, f_right) > 1e-6
        accuracy = np.minimum(np.divide(rate * f_right, f, out=np.ones_like(f), where=f > 0), 1.0)
        gap = np.where(dense, np.abs(t - accuracy) ** self.norm * f, 0.0)
        gap = gap[np.maximum.accumulate(np.where(dense, np.arange(POINTS), 0))]  # repeat the last seen value
        inside = (t >= 0) & (t <= 1)
        return float(np.trapezoid(gap[inside], dx=STEP) / np.trapezoid(f[inside], dx=STEP))

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        if self.norm != 1:
            return super().estimate(p, rows)
        value, curve = self(p), self.curve(p)
        return self.with_noise(value, l1_noise(smooth(curve, _bandwidth(curve), rows)).at(value))

    @property
    def definition(self) -> str:
        bandwidth = "bandwidth std(c of correct) (2n)^(-1/5)"
        return f"top-label KDE-ECE, triweight kernel, {bandwidth}, mirrored at 0 and 1, gap to the power {self.norm:g}"


def _bandwidth(curve: Curve) -> float:
    right = curve.outcomes > 0
    scores, weights = curve.scores, curve.weights
    if weights[right].sum() > 1:
        scores, weights = scores[right], weights[right]
    middle = np.average(scores, weights=weights)
    spread = float(np.sqrt(np.average((scores - middle) ** 2, weights=weights)))
    return max(spread * float((2 * curve.weight_unit * curve.total) ** -0.2), NARROWEST)


def _density(values: Array, weights: Array, bandwidth: float, t: Array) -> Array:
    """Density of values mirrored at the nearer end of [0, 1]; zero outside, doubled inside."""
    mirrored = np.concatenate([values, np.where(values < 0.5, -values, 2 - values)])
    w = np.concatenate([weights, weights])
    place = (mirrored - LOW) / STEP
    left = np.floor(place).astype(np.int64)
    share = place - left
    mass = np.bincount(left, w * (1 - share), POINTS + 1) + np.bincount(left + 1, w * share, POINTS + 1)
    reach = 3 * bandwidth  # the triweight kernel on (-1, 1) has standard deviation 1/3
    cells = int(reach / STEP)
    u = np.arange(-cells, cells + 1) * STEP / reach
    kernel = 35 / 32 * (1 - u * u) ** 3 / reach
    size = 1 << int(np.ceil(np.log2(POINTS + 1 + 2 * cells)))
    smooth = np.fft.irfft(np.fft.rfft(mass, size) * np.fft.rfft(kernel, size), size)[cells : cells + POINTS]
    return np.where((t > 0) & (t < 1), np.maximum(smooth, 0.0) * 2 / w.sum(), 0.0)
