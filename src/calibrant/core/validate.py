"""What a valid prediction is. Every refusal says what was expected, what came and what to do."""

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints, is_text
from calibrant.core.errors import InputError
from calibrant.core.extras import Extras
from calibrant.core.parallel import pieces, run_pieces
from calibrant.core.range import hold

SUM_TOLERANCE = 1e-3  # how far a row of probabilities may be from one: float16 files are
MOST_COUNT = 2**53  # whole numbers are exact up to here
OVER_ONE = 1e-6  # float32 softmax may round this far over one


def check_logits(logits: Any, labels: Any, few_rows: bool) -> tuple[Floats, Ints]:
    values = _scores("logits", logits)
    _check_shape("logits", values, few_rows)
    _check_finite("logits", values, "replace or drop these rows; for probabilities of 0 use from_probs")
    return hold(values), check_labels(labels, *values.shape)


def check_probs(probs: Any, labels: Any, few_rows: bool) -> tuple[Floats, Ints]:
    values = _scores("probs", probs)
    _check_shape("probs", values, few_rows)
    _check_finite("probs", values, "replace or drop these rows")
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 1 + OVER_ONE:
        row = int(np.flatnonzero((values < 0).any(1) | (values > 1 + OVER_ONE).any(1))[0])
        raise InputError(
            "probs",
            expected="values inside [0, 1]",
            got=f"{low if low < 0 else high:g} (row {row})",
            fix="if these are logits use from_logits (a column or array named logits)",
        )
    sums = _row_sums(values)
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
    values = _scores(name, scores)
    if values.ndim != 1 or len(values) == 0:
        fix = "give one score per row; for scores of all classes use from_logits or from_probs"
        fix = "leave the empty batch out: update(None) adds nothing" if values.shape == (0,) else fix
        raise InputError(name, expected="shape (n,)", got=f"shape {values.shape}", fix=fix)
    _check_finite(name, values[:, None], "replace or drop these rows")
    outside = np.flatnonzero((values < 0) | (values > 1 + OVER_ONE))
    if not logits and len(outside):
        got = f"{values[outside[0]]:g} in row {outside[0]} ({len(outside)} of {len(values)} rows)"
        fix = "say logits=True if these are margins or log-odds; divide by 100 if they are percent"
        raise InputError(name, expected="probabilities from 0 to 1", got=got, fix=fix)
    made = values.astype(np.float64)
    return made if logits else np.minimum(made, 1.0)


def check_extras(
    n: int, features: Any = None, ids: Any = None, groups: Any = None, weights: Any = None, clusters: Any = None
) -> Extras:
    held = None if weights is None else check_weights(weights, n)
    return Extras(
        _features(features, n),
        None if ids is None else _names("ids", ids, n),
        None if groups is None else _names("groups", groups, n),
        weights=held,
        unit=1.0 if weights is None else float(np.max(weights)) / (1.0 if held is None else float(held.max())),
        clusters=None if clusters is None else np.unique(_names("clusters", clusters, n), return_inverse=True)[1],
    )


def check_weights(weights: Any, n: int) -> Array | None:
    """Whole numbers count rows, as far as they have no common divisor; others are shares of a mean of one.

    Weights that are all the same say nothing: None.
    """
    values = _scores("weights", weights)
    if values.shape != (n,):
        raise InputError("weights", expected=f"shape ({n},)", got=f"shape {values.shape}", fix="give one per row")
    _check_finite("weights", values[:, None], "replace or drop these rows")
    made = values.astype(np.float64)
    if made.min() < 0:
        row = int(made.argmin())
        got = f"{made[row]:g} in row {row}"
        raise InputError("weights", expected="0 or more", got=got, fix="drop rows that must not count, or weigh them 0")
    if made.max() == 0:
        raise InputError(
            "weights", expected="at least one above 0", got="all 0", fix="leave them out to weigh all alike"
        )
    if made.min() == made.max():
        return None
    if np.all(made == np.floor(made)) and made.max() < MOST_COUNT:
        return np.asarray(made / np.gcd.reduce(made.astype(np.int64)))
    return np.asarray(made / made.mean())


def check_seen(seen: Any) -> float:
    """The share of rows that a map was fitted on; a table has it in every row."""
    array = to_numpy("seen", seen)
    if array.dtype.kind not in "iubf" or not array.size or not np.all((array >= 0) & (array <= 1)):
        got = f"{np.max(array)}" if array.dtype.kind in "iubf" and array.size else f"{array.size} of type {array.dtype}"
        raise InputError("seen", expected="a share from 0 to 1", got=got, fix="leave it out, or write the share")
    return float(np.max(array))


def _features(features: Any, n: int) -> Floats | None:
    if features is None:
        return None
    values = _scores("features", features)
    if values.ndim != 2 or len(values) != n:
        raise InputError(
            "features",
            expected=f"shape ({n}, d)",
            got=f"shape {values.shape}",
            fix="give one row per prediction",
        )
    _check_finite("features", values, "replace or drop these rows")
    return values


def _names(what: str, names: Any, n: int) -> npt.NDArray[Any]:
    array = to_numpy(what, names)
    if array.dtype == object and all(isinstance(name, str) for name in array.flat):  # a column of a table
        array = array.astype(str)
    if array.shape != (n,) or array.dtype.kind not in "iuUS":
        raise InputError(
            what,
            expected=f"{n} integers or strings",
            got=f"shape {array.shape} of type {array.dtype}",
            fix="give one integer or string per prediction",
        )
    if array.dtype.kind not in "SU":
        return array.view()
    try:
        text = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array.view()
    except UnicodeError:
        text = None
    if text is None or not is_text(text):
        raise InputError(what, expected="text", got="bytes that are no characters", fix="write the names as UTF-8")
    return text


def to_numpy(name: str, values: Any) -> npt.NDArray[Any]:
    """numpy array of a numpy array, torch CPU tensor, polars or pandas column, or nested list."""
    if hasattr(values, "detach"):
        if getattr(values.device, "type", "cpu") != "cpu":
            raise InputError(name, expected="a tensor on the CPU", got=f"one on {values.device}", fix="call .cpu()")
        values = values.detach()
        if "bfloat16" in str(values.dtype):  # numpy has no such type
            values = values.float()
        values = values.numpy()
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(
            name,
            expected="an array with rows of one length",
            got="rows of different lengths",
            fix="pad or drop them",
        ) from error


def _scores(name: str, values: Any) -> Floats:
    """As float32 or float64, without a copy where it already is, and never sharing a writable flag."""
    array = to_numpy(name, values)
    if array.dtype.kind not in "fiu":
        raise InputError(
            name,
            expected="numbers",
            got=f"type {array.dtype}",
            fix="convert it to a float32 or float64 array",
        )
    if array.dtype.kind in "iu":
        return array.astype(np.float64)
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype not in (np.float32, np.float64):
        return array.astype(np.float64)
    return np.ascontiguousarray(array).view()  # rows in one piece: the same sums from every kind of file


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


def _check_finite(name: str, values: Floats, fix: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # NaN and infinity would spread into the sum
            return
        sums = _row_sums(values)
    suspects = np.flatnonzero(~np.isfinite(sums))  # huge finite values may overflow a sum: look closer
    bad = suspects[~np.isfinite(values[suspects]).all(axis=1)]
    if len(bad):
        row = int(bad[0])
        value = values[row][~np.isfinite(values[row])][0]
        raise InputError(
            name,
            expected="finite numbers",
            got=f"{value} in row {row} ({len(bad)} of {len(values)} rows have such values)",
            fix=fix,
        )


def _row_sums(values: Floats) -> Array:
    n, k = values.shape
    sums = np.empty(n)

    def work(rows: slice) -> None:
        values[rows].sum(axis=1, out=sums[rows])

    run_pieces(work, pieces(n, max(1, (1 << 20) // max(k, 1))), values.size)
    return sums
