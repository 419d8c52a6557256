"""Structured vector scaling: vector scaling, held close to temperature scaling."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import PER_CLASS, Calibrator
from calibrant.calibrators._scaling import Ridge
from calibrant.calibrators._structured import fit_structured
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class SVS(Calibrator):
    """Temperature, then (1 + v) u + b on its log-probabilities, with a ridge on v and b that fades as rows come in.

    Does not keep predictions. The optimum is unique, and with few rows it is close to plain temperature scaling.

    >>> p = Predictions.from_logits([[2.0, 0.0], [0.0, 2.0]] * 20, [0, 1, 0, 1, 0, 0, 1, 1] * 5)
    >>> SVS().fit(p).fit.diagnosis
    'converged'
    """

    lambda_v: float = 1.0
    lambda_b: float = 1.0
    rho: float = 1.0  # power of k in the ridge
    tau: float = 1.0  # power of n in the ridge

    title: ClassVar[str] = "Structured vector scaling"
    words: ClassVar[str] = "structured vector scaling (svs)"
    slow: ClassVar[int | None] = 1 << 20
    reference: ClassVar[str] = "Berta et al., 2025 (probmetrics)"
    tasks: ClassVar[tuple[Task, ...]] = PER_CLASS
    complexity: ClassVar[int] = 2
    holds_temperature: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        ridge = p.k**self.rho / p.n_effective**self.tau
        return fit_structured(self, p, "vector", Ridge(ridge * self.lambda_v, 0.0, ridge * self.lambda_b))
