"""Steps of calibration maps: a few plain ones, each written once, for every language that a map runs in.

A map is a list of steps, so saving, composing and exporting are written once, for steps, and never per calibrator.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.maps.arrays import ArrayScores
from calibrant.core.maps.operations import Numbers, Operations, ScoreKind, Scores, Value
from calibrant.core.predictions import Predictions

S = TypeVar("S", bound=Scores)

# The predicted class only (of binary predictions the positive one), each class its own, all classes the same.
Scope = Literal["top", "classes", "shared"]
SCORE_FLOOR = 1e-6  # probabilities are kept this far from 0 and 1 before a logit is taken


@dataclass(frozen=True, eq=False)
class Step(ABC):
    """One stage of a map. Its fields are numbers, arrays and words: JSON holds them all."""

    name: ClassVar[str]

    @abstractmethod
    def run(self, s: S, c: Numbers) -> S:
        """The scores after this step; `c` are its numbers in the language of the scores."""

    def __call__(self, p: Predictions) -> Predictions:
        return self.run(ArrayScores(p), self).predictions

    def numbers(self) -> dict[str, Array]:
        """The numbers that `run` uses, as arrays by name."""
        return {name: np.asarray(value) for name, value in vars(self).items() if not isinstance(value, str)}


@dataclass(frozen=True, eq=False)
class Linear(Step):
    """z -> weight z + bias; the weight is a number, one per class (k,), or a matrix (k, k)."""

    weight: Array
    bias: Array  # (k,) or a single 0

    name: ClassVar[str] = "linear"

    def run(self, s: S, c: Numbers) -> S:
        return s.next(s.ops.affine(s.logits, c.weight, c.bias), False, s.top if self.keeps_order else None)

    @property
    def keeps_order(self) -> bool:
        """Whether the weight is one positive number for all classes: a prediction made before still stands."""
        return self.weight.ndim == 0 and self.bias.ndim == 0 and float(self.weight) > 0


@dataclass(frozen=True, eq=False)
class LogProbs(Step):
    """z -> ln softmax(z), floored at ln 1e-12: what Dirichlet calibration acts on."""

    name: ClassVar[str] = "log_probs"

    def run(self, s: S, c: Numbers) -> S:
        return s.next(s.ops.floored_log(s.probs), False, s.top)


@dataclass(frozen=True, eq=False)
class Mix(Step):
    """softmax(z) -> w0 softmax(z / T) + w1 softmax(z) + w2 / k, k being the number of options that the row has."""

    T: float
    weights: Array  # (3,) on the simplex

    name: ClassVar[str] = "mix"

    def run(self, s: S, c: Numbers) -> S:
        mixed = s.ops.mix(c.weights, s.tempered(c), s.probs, s.uniform)
        return s.next(mixed, True, s.top_in(mixed))

    def numbers(self) -> dict[str, Array]:
        """As of all steps; a T that is not used may be any number, and is 1 here."""
        return {"T": np.asarray(self.T if self.weights[0] else 1.0), "weights": self.weights}


@dataclass(frozen=True, eq=False)
class Curves(Step):
    """Scores -> values of a function given by knots, linear between them ("line") or constant ("stair").

    A stair has one more y than x: y[j] is the value for x[j - 1] < score <= x[j]. Scope "classes" has one pair of
    knots per class, the others have one pair. Of two classes x may be log-odds: next to 0 and 1 they tell rows apart
    whose scores are equal.
    """

    x: list[Array]
    y: list[Array]
    form: Literal["line", "stair"]
    scope: Scope
    on: Literal["probs", "log_odds"] = "probs"

    name: ClassVar[str] = "curves"

    def run(self, s: S, c: Numbers) -> S:
        curve = s.ops.line if self.form == "line" else s.ops.stair
        return _rescore(s, self.scope, self.on, lambda scores: curve(scores, c))

    def numbers(self) -> dict[str, Array]:
        """Tables of one width: value = y[j] + slope[j] * (max(score, x[0]) - x[j]), j being the knot.

        x (c, m) is filled up with infinity, y and slope are (c, m + 1), c is 1 or k; slope is 0 outside the knots.
        """
        pairs = list(zip(self.x, self.y, strict=True))
        width = max(1, *(len(x) for x in self.x))
        xs = np.full((len(pairs), width), np.inf)
        ys, slopes = (np.zeros((len(pairs), width + 1)) for _ in range(2))
        for c, (x, y) in enumerate(pairs):
            xs[c, : len(x)] = x
            ys[c] = y[-1]
            ys[c, : len(y)] = y
            if self.form == "line":
                rise, run = np.diff(y), np.diff(x)
                slopes[c, : len(rise)] = np.divide(rise, run, out=np.zeros(len(rise)), where=run > 1e-300)
        return {"x": xs, "y": ys, "slope": slopes}


@dataclass(frozen=True, eq=False)
class Sigmoid(Step):
    """s -> sigmoid(a ln s - b ln(1 - s) + c + d logit(s)^2), or sigmoid(a z + c) of the logit z or the score itself.

    One row of coefficients (a, b, c, d) per class, or a single one.
    """

    coefficients: Array  # (k or 1, 4)
    on: Literal["probs", "logits", "scores"]  # functions of s, of the logit z, of s as it is
    scope: Scope

    name: ClassVar[str] = "sigmoid"

    def run(self, s: S, c: Numbers) -> S:
        def margin(score: Value, a: Value, b: Value, constant: Value, square: Value) -> Value:
            return self.margin(s.ops, score, a, b, constant, square)

        on: ScoreKind = "logits" if self.on == "logits" else "probs"
        return _rescore(s, self.scope, on, lambda scores: s.ops.sigmoid_of(margin, scores, c.coefficients))

    def margin(self, ops: Operations, score: Value, a: Value, b: Value, constant: Value, square: Value) -> Value:
        """What the sigmoid is taken of."""
        if self.on != "probs":
            return a * score + constant
        s = ops.clip(score, SCORE_FLOOR, 1 - SCORE_FLOOR)
        log, log_other = ops.log(s), ops.log1m(s)
        return a * log - b * log_other + constant + square * (log - log_other) ** 2


def _rescore(s: S, scope: Scope, on: ScoreKind, value: Callable[[Value], Value]) -> S:
    """New probabilities by a function of scores: of the predicted class, the rest rescaled; or of all, renormalised."""
    if scope == "top":
        return s.rescore_top(on, value)
    return s.rescore_all(on, value, keeps_order=scope == "shared")


STEPS: dict[str, type[Step]] = {s.name: s for s in (Linear, LogProbs, Mix, Curves, Sigmoid)}
