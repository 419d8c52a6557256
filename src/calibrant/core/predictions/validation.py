"""Checks of arrays. Every error says what was expected, what was given and what to do."""

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Integers, Ints, is_text, own
from calibrant.core.curves.curve import LONG
from calibrant.core.errors import InputError
from calibrant.core.parallel import pieces, run_pieces
from calibrant.core.predictions.logit_range import clip_logits
from calibrant.core.predictions.row_data import RowData, Rows

SUM_TOLERANCE = 1e-3  # how far a row of probabilities may be from one: float16 files are
OVER_ONE = 1e-6  # float32 softmax may round this far over one
MISTAKES = 0.1  # a smaller share of scores above 1 is no other scale
IGNORED = (-100, -1, 254, 255)  # labels that data sets use for rows that have none
MOST_NAMED = 30  # labels that a message names
SURE_ROWS = 10  # fewer rows of small logits may sum to one by chance
MOST_COUNT = 2**53  # whole numbers are exact up to here


def check_logits(values: npt.ArrayLike) -> Floats:
    """Check logits (n, k): finite, in a range in which sums and squares stay finite."""
    logits = float_array("logits", values)
    _check_shape("logits", logits)
    fix = "replace or drop these rows; if -inf is the logarithm of 0, give the probabilities, named probs (from_probs)"
    check_finite("logits", logits, fix)
    return clip_logits(logits)


def check_probs(values: npt.ArrayLike) -> Floats:
    """Check probabilities (n, k): every row inside [0, 1] and summing to one."""
    probs = float_array("probs", values)
    _check_shape("probs", probs)
    check_finite("probs", probs, "replace or drop these rows")
    low, high = float(probs.min()), float(probs.max())
    if low < 0 or high > 1 + OVER_ONE:
        row = int(np.flatnonzero((probs < 0).any(1) | (probs > 1 + OVER_ONE).any(1))[0])
        fix = "if these are logits use from_logits (a column or array named logits)"
        if low >= 0 and abs(float(np.median(row_sums(probs))) - 100) < 100 * SUM_TOLERANCE:
            fix = "divide by 100: these are percent"
        got = f"{low if low < 0 else high:g} (row {row})"
        raise InputError("probs", expected="values inside [0, 1]", got=got, fix=fix)
    sums = row_sums(probs)
    off = np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE)
    if len(off):
        got = f"{sums[off[0]]:g} in row {off[0]} ({len(off)} of {len(sums)} rows are off)"
        fix = "divide each row by its sum, or use from_logits for scores before the softmax; "
        fix += "give each column to Predictions.binary if a row may have several labels"
        raise InputError("probs", expected="rows that sum to one", got=got, fix=fix)
    return np.minimum(probs, probs.dtype.type(1)) if high > 1 else probs


def look_like_probabilities(logits: Floats) -> bool:
    """Whether every row lies in [0, 1] and sums to one, which logits do not by chance."""
    if logits.min() < 0 or logits.max() > 1:
        return False
    return len(logits) >= SURE_ROWS and bool(np.all(np.abs(row_sums(logits) - 1) <= SUM_TOLERANCE))


def check_labels(labels: npt.ArrayLike, n: int, k: int, name: str = "labels") -> Ints:
    """Check labels: class numbers from 0 to k - 1, one per row."""
    array = to_numpy(name, labels)
    if array.shape != (n,):
        raise InputError(name, expected=f"shape ({n},)", got=f"shape {array.shape}", fix=fix_shape(array, (n,), k))
    check_no_gaps(name, array)
    if array.dtype.kind not in "iubf":
        raise _text_labels(name, array, k)
    if name == "correct" and not np.isin(array, (0, 1)).all():
        raise _no_outcome(array)
    if array.dtype.kind == "b":  # 0 and 1, both inside any range
        return array.astype(np.int64)
    if array.dtype.kind == "f" and len(broken := np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array))))):
        row = int(broken[0])
        raise InputError(name, expected="integers", got=f"{array[row]} in row {row}", fix="number the classes from 0")
    if n and not (array.min() >= 0 and array.max() < k):
        outside = np.flatnonzero((array < 0) | (array >= k))
        expected = f"integers in 0..{k - 1} ({k} columns of scores)"
        got = f"{array[outside[0]]} in row {outside[0]} ({len(outside)} rows are outside)"
        raise InputError(name, expected=expected, got=got, fix=_fix_class(array[outside], k))
    return array.astype(np.int64)  # always a copy: n values are cheap, a changed label is not


def fix_shape(labels: npt.NDArray[Any], wanted: tuple[int, ...], k: int, axis: int = 1) -> str:
    """What to do about labels of another shape: one column, one-hot rows, several labels in a row, or other rows."""
    if labels.ndim > len(wanted) and labels.size == np.prod(wanted):
        return f"give one label per row, without the axis of length 1: labels.reshape({', '.join(map(str, wanted))})"
    if labels.ndim == len(wanted) + 1 and labels.dtype.kind in "iubf" and np.isin(labels, (0, 1)).all():
        if np.all(labels.sum(axis=axis) == 1):
            return f"give the class index, not a one-hot row: labels.argmax(axis={axis})"
        return "give one class per row; if rows have several labels give each column to Predictions.binary"
    if labels.shape == (k,):
        return "transpose the scores, which look like (k, n)"
    return "give one label per row"


def _fix_class(outside: npt.NDArray[Any], k: int) -> str:
    """What to do about these labels, of which none is a class."""
    only = outside[0] if (outside == outside[0]).all() else None
    if only == -100:
        return "say ignore=-100 to leave these rows out, and axis=-1 for the output (N, T, V) of a language model"
    if only in IGNORED:
        return f"say ignore={only:g} if this marks rows to leave out; else number the classes from 0"
    if only == k:
        return "number the classes from 0, one column of scores for each: subtract 1 if the labels begin at 1"
    return "number the classes from 0, one column of scores for each"


def _no_outcome(correct: npt.NDArray[Any]) -> InputError:
    """The error for numbers that do not say whether a prediction was right."""
    row = int(np.flatnonzero(~np.isin(correct, (0, 1)))[0])
    partly = 0 < correct[row] < 1
    fix = "say from where on an answer is right, as in correct >= 0.5" if partly else "give 1 for right, 0 for wrong"
    return InputError("correct", expected="0 or 1", got=f"{correct[row]:g} in row {row}", fix=fix)


def check_no_gaps(name: str, labels: npt.NDArray[Any]) -> None:
    """Refuse labels of which some are NaN or None."""
    if labels.dtype.kind == "f":
        gaps = np.isnan(labels)
    elif labels.dtype.kind == "O":
        gaps = np.array([label is None or label != label for label in labels.ravel()], dtype=bool)
    else:
        return
    if gaps.any():
        row = int(gaps.argmax())
        got = f"none in row {row} ({int(gaps.sum()):,} of {gaps.size:,} rows)"
        fix = "drop these rows, or give labels=None if all rows are to be calibrated without labels"
        raise InputError(name, expected="a label in every row", got=got, fix=fix)


def _text_labels(name: str, labels: npt.NDArray[Any], k: int) -> InputError:
    """The error for labels that are not numbers."""
    fix = "number the classes from 0"
    if name == "correct" and labels.dtype.kind in "USO":
        kinds = np.unique(labels.astype(str))[:4].tolist()
        fix = f"give 1 for right and 0 for wrong, as in correct == {kinds[-1]!r}, if that means right"
        return InputError(name, expected="0 or 1", got=f"words: {', '.join(kinds)}", fix=fix)
    if labels.dtype.kind in "UO" and name == "labels":
        kinds = np.unique(labels.astype(str)).tolist()
        fix += f", or name all {k} classes in the order of the columns of scores"
        if len(kinds) <= MOST_NAMED:
            order = "if that is their order" if len(kinds) == k else f"and the {k - len(kinds)} that no row has"
            order = order if len(kinds) <= k else f"though there are {len(kinds)} names"
            fix += f": classes={kinds} (--classes {','.join(kinds)}), {order}"
        else:
            fix += f": classes=[...] (--classes), {', '.join(kinds[:3])} and {len(kinds) - 3} more"
    return InputError(name, expected="integers", got=f"type {labels.dtype}", fix=fix)


def check_any_rows(name: str, values: npt.NDArray[Any]) -> None:
    """Refuse an array without rows."""
    if values.ndim == 0:
        got = f"one value of type {values.dtype}"
        raise InputError(name, expected="a 2-D array (n, k)", got=got, fix="give one row each")
    if len(values) == 0:
        fix = "check the file, or leave the empty batch out (update(None) adds nothing)"
        raise InputError(name, expected="at least two rows", got="an empty array (n = 0)", fix=fix)


def check_row_number(name: str, values: npt.NDArray[Any], *, known: bool) -> None:
    """Refuse a table of one row, or of fewer than classes unless the rows are certainly the first axis (`known`)."""
    n, k = len(values), values.shape[1] if values.ndim == 2 else 2
    if n == 1:
        fix = "calibration needs many predictions: give more, "
        fix += "or say allow_few_rows=True (--override allow_few_rows=true)"
        raise InputError(name, expected="at least two rows", got="n = 1", fix=fix)
    if n < k and not known:
        got = f"n = {n} rows, k = {k} classes"
        fix = "transpose the array if it is (k, n); if it is right, "
        fix += "say allow_few_rows=True (--override allow_few_rows=true)"
        raise InputError(name, expected="at least as many rows as classes", got=got, fix=fix)


def check_scores(name: str, scores: npt.ArrayLike, *, logits: bool) -> Array:
    """Check scores, one per row: a probability, or any finite number where they are logits."""
    values = float_array(name, scores)
    if values.ndim != 1:
        fix = "give one score per row; for scores of all classes use from_logits or from_probs"
        raise InputError(name, expected="shape (n,)", got=f"shape {values.shape}", fix=fix)
    if len(values) == 0:
        return values.astype(np.float64)
    check_finite(name, values[:, None], "replace or drop these rows")
    outside = np.flatnonzero((values < 0) | (values > 1 + OVER_ONE))
    if not logits and len(outside):
        got = f"{values[outside[0]]:g} in row {outside[0]} ({len(outside)} of {len(values)} rows)"
        raise InputError(name, expected="probabilities from 0 to 1", got=got, fix=_fix_scale(values, outside))
    numbers = values.astype(np.float64, copy=False)
    return numbers if logits or numbers.max() <= 1 else np.minimum(numbers, 1.0)


def _fix_scale(values: Floats, outside: Ints) -> str:
    """What to do about scores that are no probabilities, by what they look like."""
    logits = "say logits=True (--override logit_score=true)"
    if values.min() < 0:
        return f"{logits} if these are margins or log-odds"
    if len(outside) < MISTAKES * len(values):
        return "correct or drop these rows: all others are probabilities"
    return f"divide by 100 if they are percent; {logits} if they are points on another scale, and fit a map to them"


def _check_shape(name: str, values: Floats) -> None:
    one = "for one score per row use Predictions.binary or from_confidence"
    if values.ndim != 2:
        fix = one if values.ndim == 1 else "say which axis holds the classes: axis=1 for (N, C, H, W)"
        raise InputError(name, expected="a 2-D array (n, k)", got=f"shape {values.shape}", fix=fix)
    if values.shape[1] < 2:
        raise InputError(name, expected="at least two columns (k >= 2)", got=f"k = {values.shape[1]}", fix=one)


def check_row_data(n: int, rows: Rows, *, ours: bool = False, clusters_have_names: bool = True) -> RowData:
    """Check data of n rows, and copy it unless nobody else writes to it; the task and notes are added by the caller."""
    if not rows:
        return RowData()
    unknown = sorted(rows.keys() - Rows.__annotations__.keys())
    if unknown:
        raise TypeError(f"got an unexpected keyword argument '{unknown[0]}'")
    weights, ids, groups, clusters = rows.get("weights"), rows.get("ids"), rows.get("groups"), rows.get("clusters")
    valid_weights = None if weights is None else check_weights(weights, n)
    largest = 1.0 if weights is None else float(np.max(np.asarray(weights)))
    numbers, names = (None, None) if clusters is None else _number_clusters(_names("clusters", clusters, n, ours=False))
    return RowData(
        features=_features(rows.get("features"), n, ours=ours),
        ids=None if ids is None else _names("ids", ids, n, ours=ours),
        groups=None if groups is None else _names("groups", groups, n, ours=ours),
        weights=valid_weights,
        unit=largest / (1.0 if valid_weights is None else float(valid_weights.max())),
        clusters=numbers,
        cluster_names=names if clusters_have_names else None,
    )


def _number_clusters(names: npt.NDArray[Any]) -> tuple[Integers, npt.NDArray[Any]]:
    """Clusters as 0, 1, ... without gaps, and their names; numbers in ascending order need no sorting."""
    if names.dtype.kind in "iu" and len(names) and np.all(names[1:] >= names[:-1]):
        few = len(names) < LONG
        clusters: Integers = np.zeros(len(names), dtype=np.int64) if few else np.zeros(len(names), dtype=np.int32)
        np.cumsum(names[1:] != names[:-1], dtype=clusters.dtype, out=clusters[1:])
        return clusters, names[np.flatnonzero(np.append(True, names[1:] != names[:-1]))]
    distinct, numbers = np.unique(names, return_inverse=True)
    return numbers, distinct


def check_weights(weights: npt.ArrayLike, n: int) -> Array | None:
    """Check and scale weights: whole numbers count rows (divided by their common divisor), others get a mean of one.

    Equal weights are no weights: None.
    """
    values = float_array("weights", weights)
    if values.shape != (n,):
        raise InputError("weights", expected=f"shape ({n},)", got=f"shape {values.shape}", fix="give one per row")
    check_finite("weights", values[:, None], "replace or drop these rows")
    w = values.astype(np.float64)
    if w.min() < 0:
        row = int(w.argmin())
        got = f"{w[row]:g} in row {row}"
        raise InputError("weights", expected="0 or more", got=got, fix="drop rows that must not count, or weigh them 0")
    if w.max() == 0:
        fix = "leave them out to weigh all alike"
        raise InputError("weights", expected="at least one above 0", got="all 0", fix=fix)
    if w.min() == w.max():
        return None
    if np.all(w == np.floor(w)) and w.max() < MOST_COUNT:
        return np.asarray(w / np.gcd.reduce(w.astype(np.int64)))
    return np.asarray(w / w.mean())


def check_seen(seen: npt.ArrayLike) -> float:
    """The share of rows that a map was fitted on; a table has it in every row."""
    array = to_numpy("seen", seen)
    if array.dtype.kind not in "iubf" or not array.size or not np.all((array >= 0) & (array <= 1)):
        got = f"{np.max(array)}" if array.dtype.kind in "iubf" and array.size else f"{array.size} of type {array.dtype}"
        raise InputError("seen", expected="a share from 0 to 1", got=got, fix="leave it out, or write the share")
    return float(np.max(array))


def _features(features: npt.ArrayLike | None, n: int, *, ours: bool) -> Floats | None:
    if features is None:
        return None
    given = to_numpy("features", features)
    values = float_array("features", given)
    if values.ndim != 2 or len(values) != n:
        got, fix = f"shape {values.shape}", "give one row per prediction"
        raise InputError("features", expected=f"shape ({n}, d)", got=got, fix=fix)
    check_finite("features", values, "replace or drop these rows")
    return values if ours else own(values, given)


def _names(what: str, names: npt.ArrayLike, n: int, *, ours: bool) -> npt.NDArray[Any]:
    array = given = to_numpy(what, names)
    if array.dtype == object and all(isinstance(name, str) for name in array.flat):  # a column of a table
        array = array.astype(str)
    if array.dtype == object and (gaps := [row for row, name in enumerate(array.flat) if _is_gap(name)]):
        got, fix = f"none in row {gaps[0]} ({len(gaps)} such rows)", "name these rows too, or drop them"
        raise InputError(what, expected=f"{n} integers or strings", got=got, fix=fix)
    if array.shape != (n,) or array.dtype.kind not in "iuUS":
        got, fix = f"shape {array.shape} of type {array.dtype}", "give one integer or string per prediction"
        raise InputError(what, expected=f"{n} integers or strings", got=got, fix=fix)
    if array.dtype.kind not in "SU":
        return array.view() if ours else own(array.view(), given)
    try:
        text = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array.view()
    except UnicodeError:
        text = None
    if text is None or not is_text(text):
        raise InputError(what, expected="text", got="bytes that are not valid UTF-8", fix="write the names as UTF-8")
    return text if ours else own(text, given)


def _is_gap(name: Any) -> bool:
    return name is None or type(name).__name__ == "NAType" or (isinstance(name, float) and name != name)


def to_numpy(name: str, values: Any) -> npt.NDArray[Any]:
    """Convert a numpy array, torch CPU tensor, polars or pandas column, or nested list to a numpy array."""
    if hasattr(values, "detach"):
        values = _strided(name, values)
    if hasattr(values, "toarray"):  # of scipy
        raise InputError(name, expected="a dense array", got="a sparse one", fix="call .toarray()")
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            got = f"{int(np.ma.getmaskarray(values).sum()):,} masked ones"
            raise InputError(name, expected="a value in every place", got=got, fix="drop the rows that are masked")
        values = values.data
    try:
        array = np.asarray(values)
        added = array.dtype.isbuiltin == 2  # by another package: ml_dtypes has a bfloat16, as JAX uses it
        return widen_bfloat16(array) if added and array.dtype.name == "bfloat16" else array
    except ValueError as error:
        expected, got = "an array with rows of one length", "rows of different lengths"
        raise InputError(name, expected=expected, got=got, fix="pad or drop them") from error
    except Exception as error:  # of __array__ of another package
        got = f"an object of type {type(values).__name__} that is none ({type(error).__name__}: {error})"
        raise InputError(name, expected="an array", got=got, fix="convert it to a numpy array") from error


def _strided(name: str, tensor: Any) -> Any:
    """A torch tensor as a numpy array."""
    if getattr(tensor.device, "type", "cpu") != "cpu":
        raise InputError(name, expected="a tensor on the CPU", got=f"one on {tensor.device}", fix="call .cpu()")
    if "strided" not in str(getattr(tensor, "layout", "strided")):
        raise InputError(name, expected="a dense tensor", got="a sparse one", fix="call .to_dense()")
    tensor = tensor.detach()
    if "bfloat16" in str(tensor.dtype) or "float8" in str(tensor.dtype):  # numpy has no such types
        tensor = tensor.float()
    return tensor.numpy()


def widen_bfloat16(array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Convert bfloat16 numbers to float32, of which they are the upper half.

    >>> widen_bfloat16(np.array([0x3F80, 0xC000], dtype=np.uint16))
    array([ 1., -2.], dtype=float32)
    """
    return (np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def float_array(name: str, values: npt.ArrayLike) -> Floats:
    """Convert to float32 or float64, without a copy where possible; a view, so that its flags are its own."""
    array = to_numpy(name, values)
    if array.dtype.kind not in "fiu":
        fix = "convert it to a float32 or float64 array"
        raise InputError(name, expected="numbers", got=f"type {array.dtype}", fix=fix)
    if array.dtype.kind in "iu":
        return array.astype(np.float64)
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype not in (np.float32, np.float64):
        return array.astype(np.float64)
    return np.ascontiguousarray(array).view()  # rows in one piece: the same sums from every kind of file


def check_finite(name: str, values: Floats, fix: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # NaN and infinity would spread into the sum
            return
        sums = row_sums(values)
    suspects = np.flatnonzero(~np.isfinite(sums))  # huge finite values may overflow a sum: look closer
    bad = suspects[~np.isfinite(values[suspects]).all(axis=1)]
    if len(bad):
        row = int(bad[0])
        value = values[row][~np.isfinite(values[row])][0]
        got = f"{value} in row {row} ({len(bad)} of {len(values)} rows have such values)"
        raise InputError(name, expected="finite numbers", got=got, fix=fix)


def row_sums(values: Floats) -> Array:
    n, k = values.shape
    sums = np.empty(n)

    def work(rows: slice) -> None:
        values[rows].sum(axis=1, out=sums[rows])

    run_pieces(work, pieces(n, max(1, (1 << 20) // max(k, 1))), values.size)
    return sums
