"""What is valid beside scores and labels: features, ids, groups, weights and clusters, one for each row."""

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, is_text
from calibrant.core.errors import InputError
from calibrant.core.extras import Extras
from calibrant.core.given_arrays import check_finite, float_array, to_numpy

MOST_COUNT = 2**53  # whole numbers are exact up to here


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
    values = float_array("weights", weights)
    if values.shape != (n,):
        raise InputError("weights", expected=f"shape ({n},)", got=f"shape {values.shape}", fix="give one per row")
    check_finite("weights", values[:, None], "replace or drop these rows")
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
    values = float_array("features", features)
    if values.ndim != 2 or len(values) != n:
        raise InputError(
            "features",
            expected=f"shape ({n}, d)",
            got=f"shape {values.shape}",
            fix="give one row per prediction",
        )
    check_finite("features", values, "replace or drop these rows")
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
        raise InputError(what, expected="text", got="bytes that are not valid UTF-8", fix="write the names as UTF-8")
    return text
