"""Beta calibration: a sigmoid with a slope of its own at each end."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibrant.calibrators._scores import STEP_SCOPE, OfScores, TiedScores, tied_scores
from calibrant.core.arrays import Array
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import SCORE_FLOOR, Sigmoid
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.logistic import Logistic, explain_separation, fit_logistic, report, smooth_targets


@dataclass(frozen=True)
class Beta(OfScores):
    """sigmoid(a ln s - b ln(1 - s) + c) with a, b >= 0: contains the identity, a = b = 1 and c = 0.

    Cannot bend a curve that falls. With few rows a and b are poorly told apart, though the curve is not.

    >>> p = Predictions.from_probs([[0.8, 0.2]] * 4 + [[0.5, 0.5]] * 2, [0, 0, 0, 1, 0, 1])
    >>> Beta().fit(p)(p).confidence.round(6)  # three numbers for two confidences: right 3 of 4 and 1 of 2
    array([0.75, 0.75, 0.75, 0.75, 0.5 , 0.5 ])
    """

    title: ClassVar[str] = "Beta calibration"
    words: ClassVar[str] = "beta calibration"
    reference: ClassVar[str] = "Kull, Silva Filho, Flach, AISTATS 2017"
    complexity: ClassVar[int] = 1

    def fit(self, p: Predictions) -> Map:
        fits = [_beta_of(tied) for tied in tied_scores(p, self.scope)]
        coefficients = np.array([[*f.slopes, f.offset, 0.0] for f in fits])  # (1 or k, 4)
        step = Sigmoid(coefficients, "probs", STEP_SCOPE[self.scope])
        columns = coefficients.T[:3].tolist()
        parameters = dict(zip("abc", ([v for (v,) in columns] if self.scope == "top" else columns), strict=True))
        return self.build_map(p, step, fit=report(fits), **parameters)


def _beta_of(tied: TiedScores) -> Logistic:
    """Fit the constrained optimum; of smoothed targets where there is none. Equal scores keep a = b = 1 and fit c."""
    s = np.clip(tied.x, SCORE_FLOOR, 1 - SCORE_FLOOR)
    features = np.stack([np.log(s), -np.log1p(-s)], axis=1)  # (m, 2)
    why = explain_separation(s, tied.rate, rising=True)
    aims = smooth_targets(tied.rate, tied.size) if why else tied.rate
    if s[0] == s[-1]:
        flat = fit_logistic(features, aims, tied.size)
        return replace(flat, slopes=np.ones(2), offset=flat.offset - float(features[0].sum()), separable=why)
    return replace(_fit_constrained(features, aims, tied.size), separable=why)


def _fit_constrained(features: Array, targets: Array, weights: Array) -> Logistic:
    """Fit both slopes if neither is below 0; else the best fit with one or both of them 0.

    The loss is convex, so with one slope below 0 the optimum has that slope 0: the rule of the paper. With both
    below 0 either may be the one that stays.
    """
    free = fit_logistic(features, targets, weights)
    if free.converged and free.slopes.min() >= 0:
        return free
    candidates = [replace(fit_logistic(features[:, :0], targets, weights), slopes=np.zeros(2))]
    surely_zero = np.flatnonzero(free.slopes < 0) if free.converged else np.empty(0)
    for free_slope in (0, 1):
        if len(surely_zero) == 1 and free_slope in surely_zero:
            continue
        single_slope = fit_logistic(features[:, [free_slope]], targets, weights)
        if single_slope.converged and single_slope.slopes[0] >= 0:
            candidates.append(replace(single_slope, slopes=np.insert(single_slope.slopes, 1 - free_slope, 0.0)))
    return min(candidates, key=lambda c: c.loss)
