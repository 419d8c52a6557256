"""The operations of map steps on arrays, and Predictions as the scores between two steps."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.maps.operations import BatchOperations, BatchScores, Numbers, Value
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.predictions.logit_range import clip_logits, mask_options, scale


class ArrayOperations(BatchOperations):
    """Arrays with one row per row of the predictions; curves are taken from the step itself, column by column."""

    def softmax(self, z: Floats) -> Array:
        e = np.exp(z - z.max(axis=1, keepdims=True).astype(np.float64))
        return np.asarray(e / self.total(e))

    def log(self, x: Array) -> Array:
        return np.log(x)

    def log1m(self, x: Array) -> Array:
        return np.log1p(-x)

    def sigmoid(self, x: Array) -> Array:
        from scipy.special import expit

        return np.asarray(expit(x))

    def clip(self, x: Array, low: float, high: float) -> Array:
        return np.clip(x, low, high)

    def floored_log(self, probs: Array) -> Array:
        return np.log(np.maximum(probs, PROBABILITY_FLOOR))

    def affine(self, z: Floats, weight: Array, bias: Array) -> Array:
        return scale(z, weight, bias)

    def divide(self, z: Floats, T: float) -> Floats:
        with np.errstate(over="ignore"):
            return clip_logits(z / np.float64(T))

    def argmax(self, x: Array) -> Ints:
        return np.asarray(x.argmax(axis=1)[:, None])

    def gather(self, x: Floats, classes: Ints) -> Floats:
        rows: Floats = np.take_along_axis(x, classes, axis=1)
        return rows

    def one_hot(self, classes: Ints, k: int) -> npt.NDArray[np.bool_]:
        return np.asarray(classes == np.arange(k))

    def where(self, mask: npt.NDArray[np.bool_], yes: Value, no: Value) -> Array:
        return np.asarray(np.where(mask, yes, no))

    def total(self, x: Array) -> Array:
        return np.asarray(x.sum(axis=1, keepdims=True))

    def as_number(self, mask: npt.NDArray[np.bool_]) -> Array:
        return mask.astype(np.float64)

    def line(self, scores: Array, curves: Any) -> Array:
        return _by_columns(scores, list(zip(curves.x, curves.y, strict=True)), np.interp)

    def stair(self, scores: Array, curves: Any) -> Array:
        return _by_columns(
            scores, list(zip(curves.x, curves.y, strict=True)), lambda s, x, y: y[np.searchsorted(x, s, side="left")]
        )

    def mix(self, weights: Array, tempered: Array, probs: Array, uniform: Array) -> Array:
        hot, plain, flat = weights
        mixed = flat * uniform
        if hot:
            mixed += hot * tempered
        if plain:
            mixed += plain * probs
        return np.asarray(mixed)

    def columns(self, table: Array) -> Array:
        return np.asarray(table.T)

    def sigmoid_of(self, margin: Callable[..., Array], scores: Floats, table: Array) -> Array:
        def value(s: Array, *row: float) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):
                inside = margin(s, *row)
                if not np.isfinite(inside).all():  # huge coefficients: in units of the largest nothing overflows twice
                    unit = np.abs(row).max()
                    inside = margin(s, *(np.array(row) / unit)) * unit
            return self.sigmoid(inside)

        return _by_columns(scores, list(table), value)


def _by_columns(scores: Floats, rows: list[Any], value: Callable[..., Array]) -> Array:
    """value(column, *row), with the row of each column or the only one; a column at a time, so as not to need more."""
    values = np.empty(scores.shape)
    for c in range(scores.shape[1]):
        values[:, c] = value(scores[:, c].astype(np.float64, copy=False), *rows[c if len(rows) > 1 else 0])
    return values


class ArrayScores(BatchScores):
    """Predictions between two steps: their views are computed once, and by the compiled passes."""

    def __init__(self, p: Predictions) -> None:
        super().__init__(
            ops=ARRAYS,
            values=None,  # the views below take its place: of one score a row both columns are not built
            k=p.k,
            are_probs=p.score_type == "probs",
            top=p.row_data.predicted,
            exists=p.row_data.option_mask,
        )
        self.predictions = p

    @property
    def logits(self) -> Floats:
        return self.predictions.logits

    @property
    def probs(self) -> Array:
        return self.predictions.probs

    def tempered(self, c: Numbers) -> Array:
        if not c.weights[0]:
            return self.probs  # they weigh nothing
        return self.next(self.ops.divide(self.logits, c.T), False).probs

    @property
    def uniform(self) -> Array:
        return self.predictions.uniform()

    @property
    def predicted(self) -> Ints:
        return self.predictions.predicted

    def next(self, values: Floats, are_probs: bool, top: Ints | None = None) -> Self:
        if self.exists is not None and not are_probs:  # however hot, options that are not there stay out
            values = mask_options(values, self.exists)
        row_data = replace(self.predictions.row_data, predicted=top)
        return type(self)(self.predictions.with_values(values, "probs" if are_probs else "logits", row_data))

    def top_in(self, values: Array) -> Ints | None:
        tied = not np.array_equal(values.argmax(axis=1), self.predicted)  # rounding: the order is the same
        return self.predicted if tied else self.top

    def rescore_top(self, on_logits: bool, value: Callable[[Value], Value]) -> Self:
        p = self.predictions
        judged: Floats = p.score
        if on_logits:  # of binary predictions the positive class is the one that the score is about
            judged = p.logits[np.arange(p.n), 1 if p.task == "binary" else p.predicted]
        return type(self)(p.with_confidence(np.clip(value(judged[:, None])[:, 0], 0.0, 1.0)))


ARRAYS = ArrayOperations()
