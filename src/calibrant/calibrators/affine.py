"""Affine scaling of a binary classifier."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.calibrators._base import Calibrator
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.logistic import platt_of, report


@dataclass(frozen=True)
class Affine(Calibrator):
    """sigmoid(a x + b) of the log-odds x of class 1, by maximum likelihood; two classes only.

    Keeps the ranking of rows while a > 0, but moves the threshold, so predictions may change.

    >>> p = Predictions.from_logits([[0.0, 0.0]] * 4 + [[0.0, 1.0]] * 3, [0, 1, 0, 1, 1, 1, 0])
    >>> fitted = Affine().fit(p)  # even odds at 0, 2 to 1 at 1: a = ln 2, b = 0
    >>> round(fitted.parameters["a"], 6), round(abs(fitted.parameters["b"]), 6)
    (0.693147, 0.0)
    """

    title: ClassVar[str] = "Affine scaling"
    reference: ClassVar[str] = "Platt, 1999; probmetrics"
    tasks: ClassVar[tuple[Task, ...]] = ("multiclass", "binary", "confidence")
    binary: ClassVar[bool] = True
    holds_temperature: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        z = p.logits.astype(np.float64)
        fitted = platt_of(z[:, 1] - z[:, 0], (p.labels == 1).astype(np.float64), p.counts)
        a, b = float(fitted.slopes[0]), fitted.offset
        step = Linear(np.array([[0.0, 0.0], [-a, a]]), np.array([0.0, b]))
        return self.build_map(p, step, fit=report([fitted]), a=a, b=b)
