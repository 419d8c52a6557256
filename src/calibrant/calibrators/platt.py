"""Platt scaling: a sigmoid of the score."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibrant.calibrators._logistic import Logistic, fit_logistic, report, separated, smoothed
from calibrant.calibrators._map import Map
from calibrant.calibrators._scores import STEP_SCOPE, OfScores, pools
from calibrant.calibrators._steps import SCORE_FLOOR, Sigmoid
from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions


@dataclass(frozen=True)
class Platt(OfScores):
    """sigmoid(a s + b), of the logit of the confidence (top) or of each class's own logit (ovr), by maximum likelihood.

    Assumes an error of one shape: where that is wrong it can raise the log loss. `ovr` looks at raw logits, so a
    constant added to a row changes its answer. `smooth` uses Platt's targets, which keep small sets from extremes.

    >>> p = Predictions.from_probs([[0.8, 0.2]] * 4 + [[0.5, 0.5]] * 2, [0, 0, 0, 1, 0, 1])
    >>> fitted = Platt().fit(p)  # 3 in 4 at logit ln 4, 1 in 2 at logit 0: a = ln 3 / ln 4
    >>> round(fitted.parameters["a"], 6), round(fitted.parameters["b"], 6)
    (0.792481, 0.0)
    """

    smooth: bool = False

    title: ClassVar[str] = "Platt scaling"
    reference: ClassVar[str] = "Platt, Advances in Large Margin Classifiers, 1999"
    complexity: ClassVar[int] = 1

    def fit(self, p: Predictions) -> Map:
        if self.scope == "top":
            pool = next(pools(p, "top"))
            fits = [platt_of(logit(pool.x), pool.rate, pool.size, smooth=self.smooth)]
        else:
            fits = [
                platt_of(p.logits[:, c].astype(np.float64), (p.labels == c).astype(np.float64), smooth=self.smooth)
                for c in range(p.k)
            ]
        a, b = np.array([f.slopes[0] for f in fits]), np.array([f.offset for f in fits])
        zero = np.zeros(len(fits))
        top = self.scope == "top"
        step = Sigmoid(
            np.stack([a, a if top else zero, b, zero], axis=1),  # (1 or k, 4)
            "probs" if top else "logits",
            STEP_SCOPE[self.scope],
        )
        given = {"a": float(a[0]), "b": float(b[0])} if top else {"a": a.tolist(), "b": b.tolist()}
        return self.made(p, step, fit=report(fits), **given)


def platt_of(scores: Array, targets: Array, weights: Array | None = None, *, smooth: bool = False) -> Logistic:
    """One sigmoid; without an optimum, that of smoothed targets. Equal scores keep slope 1 and fit the offset."""
    aims = smoothed(targets, weights) if smooth else targets
    why = "" if smooth else separated(scores, targets)
    if why:
        aims = smoothed(targets, weights)
    fitted = fit_logistic(scores[:, None], aims, weights)
    if scores.min() == scores.max():
        fitted = replace(fitted, slopes=np.ones(1), offset=fitted.offset - float(scores[0]))
    return replace(fitted, separable=why)


def logit(scores: Array) -> Array:
    s = np.clip(scores, SCORE_FLOOR, 1 - SCORE_FLOOR)
    return np.asarray(np.log(s) - np.log1p(-s))
