"""Steps of calibration maps: a few plain ones, each from Predictions to Predictions.

A map is a list of steps, so saving, composing and exporting are written once, for steps, and never per calibrator.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.predictions.logit_range import mask_options, scale
from calibrant.core.predictions.row_data import ScoreType

# The predicted class only (of binary predictions the positive one), each class its own, all classes the same.
Scope = Literal["top", "classes", "shared"]
SCORE_FLOOR = 1e-6  # probabilities are kept this far from 0 and 1 before a logit is taken


@dataclass(frozen=True, eq=False)
class Step:
    """One stage of a map. Its fields are numbers, arrays and words: JSON holds them all."""

    name: ClassVar[str]

    def __call__(self, p: Predictions) -> Predictions:
        raise TypeError(f"{type(self).__name__} does not say what it does: define __call__")


@dataclass(frozen=True, eq=False)
class Linear(Step):
    """z -> weight z + bias; the weight is a number, one per class (k,), or a matrix (k, k)."""

    weight: Array
    bias: Array  # (k,) or a single 0

    name: ClassVar[str] = "linear"

    def __call__(self, p: Predictions) -> Predictions:
        row_data = p.row_data if self.keeps_order else replace(p.row_data, predicted=None)
        z = scale(p.logits, self.weight, self.bias)
        if p.row_data.option_mask is not None:
            z = mask_options(z, p.row_data.option_mask)
        return p.with_values(z, "logits", row_data)

    @property
    def keeps_order(self) -> bool:
        """Whether the weight is one positive number for all classes: a prediction made before still stands."""
        return self.weight.ndim == 0 and self.bias.ndim == 0 and float(self.weight) > 0


@dataclass(frozen=True, eq=False)
class LogProbs(Step):
    """z -> ln softmax(z), floored at ln 1e-12: what Dirichlet calibration acts on."""

    name: ClassVar[str] = "log_probs"

    def __call__(self, p: Predictions) -> Predictions:
        logs = np.maximum(p.log_probs, np.log(PROBABILITY_FLOOR))
        return p.with_values(logs, "logits")


@dataclass(frozen=True, eq=False)
class Mix(Step):
    """softmax(z) -> w0 softmax(z / T) + w1 softmax(z) + w2 / k, k being the number of options that the row has."""

    T: float
    weights: Array  # (3,) on the simplex

    name: ClassVar[str] = "mix"

    def __call__(self, p: Predictions) -> Predictions:
        hot, plain, flat = self.weights
        mixed = flat * p.uniform()
        if hot:
            mixed += hot * p.with_temperature(self.T).probs
        if plain:
            mixed += plain * p.probs
        tied = not np.array_equal(mixed.argmax(axis=1), p.predicted)  # rounding: the order is the same
        row_data = replace(p.row_data, predicted=p.predicted) if tied else p.row_data
        return p.with_values(mixed, "probs", row_data)


@dataclass(frozen=True, eq=False)
class Curves(Step):
    """Scores -> values of a function given by knots, linear between them ("line") or constant ("stair").

    A stair has one more y than x: y[j] is the value for x[j - 1] < score <= x[j]. Scope "classes" has one pair of
    knots per class, the others have one pair.
    """

    x: list[Array]
    y: list[Array]
    form: Literal["line", "stair"]
    scope: Scope

    name: ClassVar[str] = "curves"

    def __call__(self, p: Predictions) -> Predictions:
        return _rescore(p, self.scope, "probs", self._value)

    def _value(self, scores: Array, c: int) -> Array:
        x, y = self.x[c], self.y[c]
        return np.interp(scores, x, y) if self.form == "line" else y[np.searchsorted(x, scores, side="left")]


@dataclass(frozen=True, eq=False)
class Sigmoid(Step):
    """s -> sigmoid(a ln s - b ln(1 - s) + c + d logit(s)^2), or sigmoid(a z + c) of the logit z or the score itself.

    One row of coefficients (a, b, c, d) per class, or a single one.
    """

    coefficients: Array  # (k or 1, 4)
    on: Literal["probs", "logits", "scores"]  # functions of s, of the logit z, of s as it is
    scope: Scope

    name: ClassVar[str] = "sigmoid"

    def __call__(self, p: Predictions) -> Predictions:
        return _rescore(p, self.scope, "logits" if self.on == "logits" else "probs", self._value)

    def _value(self, scores: Array, c: int) -> Array:
        from scipy.special import expit

        with np.errstate(over="ignore", invalid="ignore"):
            margin = self._margin(scores, *self.coefficients[c])
            if not np.isfinite(margin).all():  # huge coefficients: in units of the largest nothing overflows twice
                unit = np.abs(self.coefficients[c]).max()
                margin = self._margin(scores, *(self.coefficients[c] / unit)) * unit
        return np.asarray(expit(margin))

    def _margin(self, scores: Array, a: float, b: float, constant: float, square: float) -> Array:
        if self.on != "probs":
            return a * scores + constant
        s = np.clip(scores, SCORE_FLOOR, 1 - SCORE_FLOOR)
        return np.asarray(a * np.log(s) - b * np.log1p(-s) + constant + square * np.log(s / (1 - s)) ** 2)


def _rescore(p: Predictions, scope: Scope, on: ScoreType, value: Any) -> Predictions:
    """New probabilities by a function of scores: of the predicted class, the rest rescaled; or of all, renormalised.

    Of binary predictions "top" is the positive class.
    """
    if scope == "top" and p.task != "binary":
        judged = p.confidence if on == "probs" else p.logits[np.arange(p.n), p.predicted].astype(np.float64)
        return p.with_confidence(np.clip(value(judged, 0), 0.0, 1.0))
    scores = p.probs if on == "probs" else p.logits.astype(np.float64)
    if scope == "top":
        return p.with_confidence(np.clip(value(scores[:, 1], 0), 0.0, 1.0))
    probs = np.stack([value(scores[:, c], c if scope == "classes" else 0) for c in range(p.k)], axis=1)
    total = probs.sum(axis=1, keepdims=True)
    probs = np.where(total > 0, probs / np.where(total > 0, total, 1.0), 1 / p.k)
    row_data = replace(p.row_data, predicted=p.predicted) if scope == "shared" else replace(p.row_data, predicted=None)
    return p.with_values(probs, "probs", row_data)


STEPS: dict[str, type[Step]] = {s.name: s for s in (Linear, LogProbs, Mix, Curves, Sigmoid)}
