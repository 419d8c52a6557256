"""What a valid prediction is. Every refusal says what was expected, what came and what to do."""

from typing import Any

import numpy as np

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.given_arrays import check_finite, float_array, row_sums, to_numpy
from calibrant.core.range import hold

SUM_TOLERANCE = 1e-3  # how far a row of probabilities may be from one: float16 files are
OVER_ONE = 1e-6  # float32 softmax may round this far over one


def check_logits(logits: Any, labels: Any, few_rows: bool) -> tuple[Floats, Ints]:
    values = float_array("logits", logits)
    _check_shape("logits", values, few_rows)
    check_finite("logits", values, "replace or drop these rows; for probabilities of 0 use from_probs")
    return hold(values), check_labels(labels, *values.shape)


def check_probs(probs: Any, labels: Any, few_rows: bool) -> tuple[Floats, Ints]:
    values = float_array("probs", probs)
    _check_shape("probs", values, few_rows)
    check_finite("probs", values, "replace or drop these rows")
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 1 + OVER_ONE:
        row = int(np.flatnonzero((values < 0).any(1) | (values > 1 + OVER_ONE).any(1))[0])
        raise InputError(
            "probs",
            expected="values inside [0, 1]",
            got=f"{low if low < 0 else high:g} (row {row})",
            fix="if these are logits use from_logits (a column or array named logits)",
        )
    sums = row_sums(values)
    off = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(off):
        raise InputError(
            "probs",
            expected="rows that sum to one",
            got=f"{sums[off[0]]:g} in row {off[0]} ({len(off)} of {len(sums)} rows are off)",
            fix="divide each row by its sum, or use from_logits for scores before the softmax",
        )
    if high > 1:
        values = np.minimum(values, values.dtype.type(1))
    return values, check_labels(labels, *values.shape)


def check_labels(labels: Any, n: int, k: int, name: str = "labels") -> Ints:
    array = to_numpy(name, labels)
    if array.shape != (n,):
        hint = "give the class index, not a one-hot row" if array.ndim == 2 else "give one label per row"
        raise InputError(name, expected=f"shape ({n},)", got=f"shape {array.shape}", fix=hint)
    if array.dtype.kind not in "iubf":
        fix = "number the classes from 0"
        if array.dtype.kind in "UO" and name == "labels":
            found = np.unique(array.astype(str)).tolist()[:8]
            fix += f", or name them in the order of the scores: classes={found} (--classes {','.join(found)})"
        raise InputError(name, expected="integers", got=f"type {array.dtype}", fix=fix)
    if array.dtype.kind == "b":  # no others to look for
        return array.astype(np.int64)
    broken = np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array))))
    if len(broken):
        row = int(broken[0])
        raise InputError(name, expected="integers", got=f"{array[row]} in row {row}", fix="number the classes from 0")
    outside = np.flatnonzero((array < 0) | (array >= k))
    if len(outside):
        row = int(outside[0])
        raise InputError(
            name,
            expected=f"integers in 0..{k - 1} ({k} columns of scores)",
            got=f"{array[row]} in row {row} ({len(outside)} rows are outside)",
            fix="say ignore=-100 to leave these rows out, and axis=-1 for the output (N, T, V) of a language model"
            if array[row] == -100
            else "number the classes from 0, one column of scores for each",
        )
    return array.astype(np.int64)  # always a copy: n values are cheap, a changed label is not


def check_scores(name: str, scores: Any, *, logits: bool) -> Array:
    """One score per row: a probability, or any finite number where they are logits."""
    values = float_array(name, scores)
    if values.ndim != 1 or len(values) == 0:
        fix = "give one score per row; for scores of all classes use from_logits or from_probs"
        fix = "leave the empty batch out: update(None) adds nothing" if values.shape == (0,) else fix
        raise InputError(name, expected="shape (n,)", got=f"shape {values.shape}", fix=fix)
    check_finite(name, values[:, None], "replace or drop these rows")
    outside = np.flatnonzero((values < 0) | (values > 1 + OVER_ONE))
    if not logits and len(outside):
        got = f"{values[outside[0]]:g} in row {outside[0]} ({len(outside)} of {len(values)} rows)"
        fix = "say logits=True if these are margins or log-odds; divide by 100 if they are percent"
        raise InputError(name, expected="probabilities from 0 to 1", got=got, fix=fix)
    made = values.astype(np.float64, copy=False)
    return made if logits or made.max() <= 1 else np.minimum(made, 1.0)


def _check_shape(name: str, values: Floats, few_rows: bool) -> None:
    if values.ndim != 2:
        fix = (
            "for one score per row use Predictions.binary or from_confidence"
            if values.ndim == 1
            else "say which axis holds the classes: axis=1 for (N, C, H, W)"
        )
        raise InputError(name, expected="a 2-D array (n, k)", got=f"shape {values.shape}", fix=fix)
    n, k = values.shape
    if n == 0:
        raise InputError(
            name,
            expected="at least two rows",
            got="an empty array (n = 0)",
            fix="check the file, or leave the empty batch out",
        )
    if k < 2:
        raise InputError(
            name,
            expected="at least two columns (k >= 2)",
            got=f"k = {k}",
            fix="for one score per row use Predictions.binary or from_confidence",
        )
    if n == 1 and not few_rows:
        raise InputError(
            name,
            expected="at least two rows",
            got="n = 1",
            fix="calibration is about many predictions: give more",
        )
    if n < k and not few_rows:
        raise InputError(
            name,
            expected="at least as many rows as classes",
            got=f"n = {n} rows, k = {k} classes",
            fix="transpose the array if it is (k, n); if it is right, say few_rows=True (--few-rows)",
        )
