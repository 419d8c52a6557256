"""Temperature scaling, solved exactly and with a certificate."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.calibrators._base import EVERY_SHAPE, Calibrator, scaled
from calibrant.core.extras import Shape
from calibrant.core.map import Fit, Map
from calibrant.core.predictions import Predictions
from calibrant.core.temperature import descend, find_temperature


@dataclass(frozen=True)
class Temperature(Calibrator):
    """Every logit divided by one number, the minimiser of the negative log-likelihood.

    Cannot repair errors that differ between classes or confidences. T below 1 makes the model more confident.

    >>> p = Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1])  # right 3 times in 4: 2 / T = ln 3
    >>> round(Temperature().fit(p).parameters["T"], 4)
    1.8205
    """

    by: Literal["newton", "gd1000"] = (
        "newton"  # gd1000: 1,000 plain gradient steps of 0.001 on T, as for Neural Clamping
    )

    title: ClassVar[str] = "Temperature scaling"
    reference: ClassVar[str] = "Guo et al., ICML 2017"
    shapes: ClassVar[tuple[Shape, ...]] = EVERY_SHAPE
    keeps_argmax: ClassVar[bool] = True
    holds_temperature: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        if self.by == "gd1000":
            T, gradient = descend(p, steps=1000, rate=0.001)
            return self.made(p, scaled(T), fit=Fit(False, "stopped after 1000 steps of 0.001", gradient, 1000), T=T)
        found = find_temperature(p)
        converged = found.diagnosis == "converged"
        with np.errstate(over="ignore"):  # of a few rows that say next to nothing
            half = float(np.exp(1.96 * found.stderr / found.T)) if converged else np.inf  # normal in ln T
        return self.made(
            p,
            scaled(found.T),
            fit=Fit(converged, found.diagnosis, abs(found.gradient) if converged else None),
            T=found.T,
            T_low=found.T / half,
            T_high=found.T * half,
        )
