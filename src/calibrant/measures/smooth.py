"""Smooth calibration error (smECE): a Gaussian instead of bins, as wide as the error itself."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.kernels import smooth_error
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.residual_noise import l1_noise
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures._base import CurveMeasure, Unit
from calibrant.measures._dialects import RELPLOT_WORDS, relplot_smooth
from calibrant.measures._fields import smooth


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
    other_names: ClassVar[tuple[str, ...]] = ("smece", "smooth_ece")
    unit: ClassVar[Unit] = "percent"
    meaning: ClassVar[str] = "The same without bins: it cannot depend on their number."
    reference: ClassVar[str] = "Blasiok, Nakkiran, ICLR 2024"
    of_calibration: ClassVar[bool] = True
    resamples: ClassVar[int] = 200

    def from_curve(self, curve: Curve) -> float:
        residual = curve.scores - curve.outcomes
        residual *= curve.weights
        residual /= curve.total
        if self.dialect == "relplot":
            return relplot_smooth(curve.scores, curve.weights, residual)
        return smooth_error(curve.scores, residual)[0]

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        value = self(p)
        return self.with_noise(value, l1_noise(smooth(self.curve(p), value, rows)).at(value))

    @property
    def definition(self) -> str:
        if self.dialect == "relplot":
            return f"top-label smECE as relplot computes it: {RELPLOT_WORDS}"
        return "top-label smECE, Gaussian reflected at 0 and 1, bandwidth = the error itself"
