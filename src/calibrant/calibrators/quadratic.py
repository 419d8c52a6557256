"""Quadratic scaling of a binary classifier."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibrant.calibrators._base import Calibrator
from calibrant.calibrators.platt import logit
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Sigmoid
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.logistic import explain_separation, fit_logistic, report, smooth_targets


@dataclass(frozen=True)
class Quadratic(Calibrator):
    """sigmoid(c x^2 + a x + b) of the log-odds x of class 1, by maximum likelihood; two classes only.

    A parabola turns somewhere: far from the calibration rows it may reverse the ranking. Look at c.

    >>> x = [0.0] * 4 + [1.0] * 3 + [-1.0] * 3
    >>> p = Predictions.from_logits([[0.0, one] for one in x], [0, 1, 0, 1, 1, 1, 0, 0, 0, 1])
    >>> fitted = Quadratic().fit(p)  # even odds at 0, 2 to 1 at 1, 1 to 2 at -1: a straight line
    >>> [round(fitted.parameters[name], 6) + 0.0 for name in "abc"]
    [0.693147, 0.0, 0.0]
    """

    title: ClassVar[str] = "Quadratic scaling"
    reference: ClassVar[str] = "probmetrics"
    tasks: ClassVar[tuple[Task, ...]] = ("multiclass", "binary", "confidence")
    binary: ClassVar[bool] = True
    holds_temperature: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        x, targets = logit(p.probs[:, 1]), (p.labels == 1).astype(np.float64)
        why = explain_separation(x, targets)
        aims = smooth_targets(targets, p.counts) if why else targets
        fitted = fit_logistic(np.stack([x, x**2], axis=1), aims, p.counts)
        a, c, b = float(fitted.slopes[0]), float(fitted.slopes[1]), fitted.offset
        step = Sigmoid(np.array([[a, a, -b, -c], [a, a, b, c]]), "probs", "classes")
        return self.build_map(p, step, fit=report([replace(fitted, separable=why)]), a=a, b=b, c=c)
