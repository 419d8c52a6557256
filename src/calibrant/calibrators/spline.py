"""Spline calibration: a smooth fit of the cumulative error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.calibrators._base import EVERY_TASK, Calibrator
from calibrant.calibrators._scores import free_fit, ordered_scores
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Fit, Map
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class Spline(Calibrator):
    """Confidence plus the slope of a natural cubic spline fitted to the cumulative error of the sorted rows.

    Not monotone: with few rows the spline follows noise, and repairs only (n - 1) / n of an error. Equal confidences
    share their outcomes evenly.

    >>> p = Predictions.from_probs([[0.8, 0.2]] * 4, [0, 0, 1, 1])
    >>> Spline().fit(p)(p).confidence.round(6)  # 3 steps of (0.5 - 0.8) / 4 from t = 0 to 1: -0.225
    array([0.575, 0.575, 0.575, 0.575])
    """

    knots: int = 6

    title: ClassVar[str] = "Spline calibration"
    reference: ClassVar[str] = "Gupta et al., ICLR 2021"
    tasks: ClassVar[tuple[Task, ...]] = EVERY_TASK
    keeps_argmax: ClassVar[bool] = True
    of_score: ClassVar[bool] = True
    complexity: ClassVar[int] = 3
    says_zero: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.knots < 2:
            raise InputError("knots", expected="2 or more", got=str(self.knots), fix="use 6")

    def fit(self, p: Predictions) -> Map:
        from scipy.interpolate import CubicSpline
        from scipy.special import expit

        (tied,), on = ordered_scores(p, "top")
        scores = expit(tied.x) if on == "log_odds" else tied.x
        n = max(1, round(tied.n))
        up_to = np.cumsum(tied.size)
        places = tied.n * np.arange(1, n + 1) / n  # the ends of rows in order of score, all of one weight
        group = np.minimum(np.searchsorted(up_to, places), len(tied.x) - 1)  # (n,) the score that each row has
        error = np.interp(places, np.append(0.0, up_to), np.append(0.0, np.cumsum(tied.positives - scores * tied.size)))
        knots = max(2, min(self.knots, n))
        basis = CubicSpline(np.linspace(0.0, 1.0, knots), np.eye(knots), bc_type="natural")
        t = np.linspace(0.0, 1.0, n)
        weights = np.linalg.lstsq(basis(t), error / tied.n)[0]
        rows = np.bincount(group, minlength=len(tied.x))
        middle = basis((up_to - tied.size / 2) / tied.n, 1) @ weights  # where the rows' weight makes less than one
        total = np.bincount(group, basis(t, 1) @ weights, len(tied.x))
        value = scores + np.divide(total, rows, out=middle, where=rows > 0)
        report = free_fit(p, "top")
        if knots < self.knots:
            report = Fit(diagnosis=f"{report.diagnosis}; {knots} knots only, for {n} rows")
        return self.build_map(p, Curves([tied.x], [value], "line", "top", on), fit=report)
