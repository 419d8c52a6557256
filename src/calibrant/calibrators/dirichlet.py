"""Dirichlet calibration with off-diagonal and intercept regularisation (Dir-ODIR)."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import PER_CLASS, Calibrator
from calibrant.calibrators._odir import Select, fit_odir
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear, LogProbs
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class Dirichlet(Calibrator):
    """softmax(W ln p + b) with small off-diagonal weights and biases; seven strengths, chosen by cross-validation.

    Acts on log-probabilities, so it also repairs models that only give probabilities. Slow for many classes.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.1, 0.9]] * 20, [0, 1, 0, 1, 0, 0, 1, 1] * 5)
    >>> Dirichlet().fit(p).fit.converged
    True
    """

    select: Select = "cross_validation"
    grid: bool = False  # all 49 pairs of strengths instead of 7 equal ones

    title: ClassVar[str] = "Dirichlet calibration with ODIR"
    reference: ClassVar[str] = "Kull et al., NeurIPS 2019"
    tasks: ClassVar[tuple[Task, ...]] = PER_CLASS
    complexity: ClassVar[int] = 3
    holds_temperature: ClassVar[bool] = True
    picks: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        logs = LogProbs()
        linear, chosen = fit_odir(logs(p), self.select, self.grid)
        return self.build_map(p, logs, Linear(linear.weight, linear.bias), fit=linear.fit, **chosen)
