"""What a language must offer for the steps of a map to run in it, and the scores that steps hand on.

Each step is written once, as a function of these operations (steps.py). Arrays (arrays.py), torch modules, ONNX graphs
and Python files implement them; what only one of them needs is a method of that one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

Value = Any  # scores in some language: an array, a tensor, a node of a graph, the text of an expression
ScoreKind = Literal["probs", "logits", "log_odds"]  # what a step is a function of; log-odds are of two classes
Numbers = Any  # the numbers of a step as a language holds them, by the names of `Step.numbers`


class Operations(ABC):
    """The operations that every language has; values take + - * and **."""

    @abstractmethod
    def softmax(self, z: Value) -> Value: ...
    @abstractmethod
    def log(self, x: Value) -> Value: ...
    @abstractmethod
    def log1m(self, x: Value) -> Value:
        """ln(1 - x)."""

    @abstractmethod
    def clip(self, x: Value, low: float, high: float) -> Value: ...
    @abstractmethod
    def floored_log(self, probs: Value) -> Value:
        """Logarithms of probabilities, of 1e-12 where they are below."""

    @abstractmethod
    def affine(self, z: Value, weight: Numbers, bias: Numbers) -> Value:
        """weight z + bias; the weight is a number, one per class (k,), or a matrix (k, k)."""

    @abstractmethod
    def divide(self, z: Value, T: Numbers) -> Value: ...
    @abstractmethod
    def mix(self, weights: Numbers, tempered: Value, probs: Value, uniform: Value) -> Value:
        """The sum of three distributions by weights."""

    @abstractmethod
    def argmax(self, x: Value) -> Value:
        """The class of the largest value, in a single column; the lowest of a tie."""

    @abstractmethod
    def gather(self, x: Value, classes: Value) -> Value:
        """The value of the class that a single column names, in a single column."""

    @abstractmethod
    def line(self, scores: Value, curves: Numbers) -> Value:
        """The values of curves that are straight from knot to knot: of each column its own, or of all the only one."""

    @abstractmethod
    def stair(self, scores: Value, curves: Numbers) -> Value:
        """The same of curves that are level from knot to knot."""

    @abstractmethod
    def sigmoid_of(self, margin: Callable[..., Value], scores: Value, table: Numbers) -> Value:
        """The sigmoid of `margin(scores, *row)`, which is linear in the row: that of the class, or the only one."""


class BatchOperations(Operations):
    """Those of languages that hold many rows at once; values have a column per class, or one, and take / and > too."""

    @abstractmethod
    def sigmoid(self, x: Value) -> Value: ...
    @abstractmethod
    def columns(self, table: Numbers) -> Any:
        """The columns of a table with a row per class, or a single row, as values."""

    @abstractmethod
    def one_hot(self, classes: Value, k: int) -> Value:
        """A mask of the class that a single column names."""

    @abstractmethod
    def where(self, mask: Value, yes: Value, no: Value) -> Value: ...
    @abstractmethod
    def total(self, x: Value) -> Value:
        """The sum of a row, in a single column."""

    @abstractmethod
    def as_number(self, mask: Value) -> Value:
        """1 where the mask is true, else 0."""

    def divide(self, z: Value, T: Numbers) -> Value:
        return z / T

    def mix(self, weights: Numbers, tempered: Value, probs: Value, uniform: Value) -> Value:
        hot, plain, flat = weights
        return hot * tempered + plain * probs + flat * uniform

    def sigmoid_of(self, margin: Callable[..., Value], scores: Value, table: Numbers) -> Value:
        return self.sigmoid(margin(scores, *self.columns(table)))


@dataclass(kw_only=True)
class Scores(ABC):
    """Logits or probabilities between two steps, and the prediction where a step has settled it."""

    ops: Operations
    values: Value
    k: int
    are_probs: bool = False
    top: Value | None = None  # the prediction, in a single column; None: the class of the largest value
    one_score: bool = False  # of two classes the second is what the score is about, and `top` stays there

    @property
    def logits(self) -> Value:
        return self.ops.floored_log(self.values) if self.are_probs else self.values

    @property
    def probs(self) -> Value:
        return self.values if self.are_probs else self.ops.softmax(self.values)

    @property
    @abstractmethod
    def uniform(self) -> Value:
        """The uniform distribution over the options that there are."""

    @property
    def predicted(self) -> Value:
        return self.ops.argmax(self.values) if self.top is None else self.top

    def tempered(self, c: Numbers) -> Value:
        """Probabilities at the temperature of a mixture."""
        return self.ops.softmax(self.ops.divide(self.logits, c.T))

    def next(self, values: Value, are_probs: bool, top: Value | None = None) -> Self:
        """The scores that a step makes of these; `top` is the prediction where it is not that of the values."""
        return replace(self, values=values, are_probs=are_probs, top=self.top if self.one_score else top)

    def top_in(self, values: Value) -> Value | None:
        """The settled prediction, where new values are in the order of these."""
        return self.top

    @property
    @abstractmethod
    def odds(self) -> Value:
        """The log-odds of each of two classes."""

    def of_kind(self, on: ScoreKind) -> Value:
        """The scores of every class that a step is a function of."""
        if on == "log_odds":
            return self.odds
        return self.logits if on == "logits" else self.probs

    @abstractmethod
    def rescore_top(self, on: ScoreKind, value: Callable[[Value], Value]) -> Self:
        """The prediction gets a function of its score as its probability; the other classes are rescaled."""

    @abstractmethod
    def rescore_all(self, on: ScoreKind, value: Callable[[Value], Value], keeps_order: bool) -> Self:
        """Every class gets a function of its score, divided by their sum."""


@dataclass(kw_only=True)
class BatchScores(Scores):
    """Scores of many rows at once."""

    ops: BatchOperations
    exists: Value | None = None  # the options there are, where that differs between rows

    @property
    def logits(self) -> Value:
        if not self.are_probs or self.exists is None:
            return super().logits
        return self.ops.where(self.exists, super().logits, -np.inf)

    @property
    def uniform(self) -> Value:
        if self.exists is None:
            return 1 / self.k
        there = self.ops.as_number(self.exists)
        return there / self.ops.total(there)

    @property
    def odds(self) -> Value:
        z = self.logits
        return z * 2.0 - self.ops.total(z)

    def rescore_top(self, on: ScoreKind, value: Callable[[Value], Value]) -> Self:
        ops, top, probs, uniform = self.ops, self.predicted, self.probs, self.uniform
        q = ops.clip(value(ops.gather(self.of_kind(on), top)), 0.0, 1.0)
        is_top, left = ops.one_hot(top, self.k), 1 - q
        others = ops.where(is_top, 0.0, probs)
        rest = ops.total(others)
        is_positive = rest > 0
        rescaled = others * (left / ops.where(is_positive, rest, 1.0))  # no division by 0: its gradient is NaN
        shared = ops.where(is_positive, rescaled, left * (uniform / (1 - uniform)))
        return self.next(ops.where(is_top, q, shared), True, top)

    def rescore_all(self, on: ScoreKind, value: Callable[[Value], Value], keeps_order: bool) -> Self:
        top = self.predicted if keeps_order else None
        values = value(self.of_kind(on))
        total = self.ops.total(values)
        is_positive = total > 0
        probs = self.ops.where(is_positive, values / self.ops.where(is_positive, total, 1.0), 1 / self.k)
        return self.next(probs, True, top)
