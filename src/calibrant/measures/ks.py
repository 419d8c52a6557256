"""Kolmogorov-Smirnov calibration error: no bins at all."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.config.bounds import at_least
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import sort_curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.residual_noise import max_noise
from calibrant.core.statistics.sampling import Sampling
from calibrant.core.text.vocabulary import describe_task
from calibrant.measures._base import CurveMeasure, Unit
from calibrant.measures._fields import running


@dataclass(frozen=True)
class KS(CurveMeasure):
    """Largest gap between the running sums of confidence and of correctness, sorted by confidence.

    Errors of opposite sign cancel in the running sum, so it is never above an ECE with fine bins. `rank=2` looks at the
    second most likely class, `rank=2,within=true` at the two most likely together.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(KS()(p), 3)  # running gaps: 0.6 / 2, (0.6 - 0.1) / 2
    0.3
    """

    rank: int = 1
    within: bool = False

    title: ClassVar[str] = "KS calibration error"
    other_names: ClassVar[tuple[str, ...]] = ("ks_error", "ks_ece", "kolmogorov_smirnov")
    name_hint: ClassVar[str] = "of calibration, not of separation"
    blind_to: ClassVar[str] = "errors at high scores that cancel those at low scores"
    unit: ClassVar[Unit] = "percent"
    reference: ClassVar[str] = "Gupta et al., ICLR 2021"
    of_calibration: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("rank", self.rank, 1)

    def curve(self, p: Predictions) -> Curve:
        if self.rank == 1:
            return super().curve(p)
        if p.task != "multiclass":
            fix = "leave rank out"
            raise InputError("ks:rank", expected="scores of all classes", got=describe_task(p.task), fix=fix)
        if self.rank > p.k:
            raise InputError("rank", expected=f"1 to {p.k} (the classes)", got=str(self.rank), fix="give a lower rank")
        scores, outcomes = np.empty(p.n), np.empty(p.n)
        for rows, probs in p.prob_rows():
            order = np.argsort(-probs, axis=1, kind="stable")[:, : self.rank]
            chosen = order if self.within else order[:, -1:]
            scores[rows] = np.minimum(np.take_along_axis(probs, chosen, axis=1).sum(axis=1), 1.0)
            outcomes[rows] = (chosen == p.labels[rows, None]).any(axis=1)
        return sort_curve(scores, outcomes, p.weights)

    def from_curve(self, curve: Curve) -> float:
        return max(float(np.abs(gaps).max()) for _, gaps in curve.gap_blocks()) / curve.total

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        curve = self.curve(p)
        value = self.from_curve(curve)
        return self.with_noise(value, max_noise(running(curve, rows)).at(value))

    @property
    def definition(self) -> str:
        of = f"within-top-{self.rank}" if self.within else "top-label" if self.rank == 1 else f"rank-{self.rank}"
        return f"largest gap of the cumulative {of} curves, at the ends of tie groups"
