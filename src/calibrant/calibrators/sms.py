"""Structured matrix scaling: matrix scaling, held close to temperature scaling."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import PER_CLASS, Calibrator
from calibrant.calibrators._scaling import Ridge
from calibrant.calibrators._structured import fit_structured
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class SMS(Calibrator):
    """Temperature, then (I + diag(v) + M) u + b on its log-probabilities, with ridges on v, b and M.

    Does not keep predictions. Rarely hurts, because with few rows it is close to plain temperature scaling.

    >>> p = Predictions.from_logits([[2.0, 0.0], [0.0, 2.0]] * 20, [0, 1, 0, 1, 0, 0, 1, 1] * 5)
    >>> SMS().fit(p).fit.diagnosis
    'converged'
    """

    lambda_v: float = 1.0
    lambda_b: float = 1.0
    lambda_m: float = 1.0
    rho: float = 1.0  # power of k in the ridges
    tau: float = 1.0  # power of n in the ridges

    title: ClassVar[str] = "Structured matrix scaling"
    words: ClassVar[str] = "structured matrix scaling (sms)"
    slow: ClassVar[int | None] = 1 << 19
    reference: ClassVar[str] = "Berta et al., 2025 (probmetrics)"
    tasks: ClassVar[tuple[Task, ...]] = PER_CLASS
    complexity: ClassVar[int] = 3
    holds_temperature: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        ridge = p.k**self.rho / p.n_effective**self.tau
        pairs = (p.k * (p.k - 1)) ** self.rho / p.n_effective**self.tau
        penalty = Ridge(ridge * self.lambda_v, pairs * self.lambda_m, ridge * self.lambda_b)
        return fit_structured(self, p, "matrix", penalty)
