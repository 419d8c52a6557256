"""Temperature scaling, solved exactly and with a certificate."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.calibrators._base import EVERY_TASK, Calibrator, build_scaling
from calibrant.core.maps.map import Fit, Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.estimate import Estimate, Normal
from calibrant.core.statistics.temperature import TemperatureFit, descend, find_temperature


@dataclass(frozen=True)
class Temperature(Calibrator):
    """Every logit divided by one number, the minimiser of the negative log-likelihood.

    Cannot repair errors that differ between classes or confidences, nor the mean of rare events. T below 1 makes the
    model more confident. The interval T_low .. T_high counts rows, or whole clusters where there are any.

    >>> p = Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1])  # right 3 times in 4: 2 / T = ln 3
    >>> round(Temperature().fit(p).parameters["T"], 4)
    1.8205
    """

    solver: Literal["newton", "gd1000"] = (
        "newton"  # gd1000: 1,000 plain gradient steps of 0.001 on T, as for Neural Clamping
    )

    title: ClassVar[str] = "Temperature scaling"
    other_names: ClassVar[tuple[str, ...]] = ("ts", "temp_scaling", "temperature_scaler")
    reference: ClassVar[str] = "Guo et al., ICML 2017"
    tasks: ClassVar[tuple[Task, ...]] = EVERY_TASK
    keeps_argmax: ClassVar[bool] = True
    holds_temperature: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        if self.solver == "gd1000":
            T, gradient = descend(p, steps=1000, rate=0.001)
            return self.build_map(
                p, build_scaling(T), fit=Fit(False, "stopped after 1000 steps of 0.001", gradient, 1000), T=T
            )
        fitted = find_temperature(p)
        converged = fitted.diagnosis == "converged"
        low, high = _estimate(p, fitted).limits() if converged else (0.0, np.inf)
        return self.build_map(
            p,
            build_scaling(fitted.T),
            fit=Fit(converged, fitted.diagnosis, abs(fitted.gradient) if converged else None),
            T=fitted.T,
            T_low=low,
            T_high=high,
        )


def _estimate(p: Predictions, fitted: TemperatureFit) -> Estimate:
    """T with normal noise in ln T; of clusters, whose spread is estimated, Student's with one degree less."""
    freedom = np.inf if p.clusters is None else max(1, len(np.unique(p.clusters)) - 1)
    return Estimate(value=fitted.T, noise=Normal(error=fitted.stderr / fitted.T, freedom=freedom, link="log"))
