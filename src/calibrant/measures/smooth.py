"""Smooth calibration error (smECE): a Gaussian instead of bins, as wide as the error itself."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curve import Curve
from calibrant.core.kernels import cosine_sums, heat
from calibrant.measures._base import CurveMeasure
from calibrant.measures._dialects import RELPLOT_WORDS, relplot_smooth

NARROWEST = 0.001
MODES_PER_SIGMA = 2.75  # exp(-(pi * 2.75)^2 / 2) is below 1e-16


@dataclass(frozen=True)
class Smooth(CurveMeasure):
    """Integral of the smoothed residual, at the bandwidth where it equals the bandwidth.

    Exact to about 1e-7: the reflected Gaussian is a damping of cosine modes. `dialect=relplot` gives the
    number of relplot and its ports, which loses mass where confidences pile up near 1.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(Smooth()(p), 4)
    0.25
    """

    dialect: Literal["relplot"] | None = None

    title: ClassVar[str] = "Smooth calibration error"
    reference: ClassVar[str] = "Blasiok, Nakkiran, ICLR 2024"
    of_calibration: ClassVar[bool] = True
    resamples: ClassVar[int] = 200

    def on(self, curve: Curve) -> float:
        residual = (curve.scores - curve.hits) / curve.n
        if self.dialect == "relplot":
            return relplot_smooth(curve.scores, residual)
        coarse = cosine_sums(curve.scores, residual, 256)
        least = MODES_PER_SIGMA / 256
        if _error(coarse, least) > least:
            return _fixed_point(coarse, least)
        return _fixed_point(cosine_sums(curve.scores, residual, int(MODES_PER_SIGMA / NARROWEST)), NARROWEST)

    @property
    def definition(self) -> str:
        if self.dialect == "relplot":
            return f"top-label smECE as relplot computes it: {RELPLOT_WORDS}"
        return "top-label smECE, Gaussian reflected at 0 and 1, bandwidth = the error itself"


def _error(coefficients: Array, sigma: float) -> float:
    points = max(4096, 1 << int(np.ceil(np.log2(20 / sigma))))
    modes = min(len(coefficients), int(np.ceil(MODES_PER_SIGMA / sigma)) + 1)
    return float(np.abs(heat(coefficients[:modes], sigma, points)).mean())


def _fixed_point(coefficients: Array, low: float) -> float:
    """The error at the sigma that equals it: it never rises with sigma, so halving finds it."""
    high = 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if _error(coefficients, middle) <= middle:
            high = middle
        else:
            low = middle
    return _error(coefficients, high)
