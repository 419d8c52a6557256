"""Arrays from what users give: lists, columns and tensors as numpy arrays, and their numbers finite."""

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats
from calibrant.core.errors import InputError
from calibrant.core.parallel import pieces, run_pieces


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


def float_array(name: str, values: Any) -> Floats:
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
        raise InputError(
            name,
            expected="finite numbers",
            got=f"{value} in row {row} ({len(bad)} of {len(values)} rows have such values)",
            fix=fix,
        )


def row_sums(values: Floats) -> Array:
    n, k = values.shape
    sums = np.empty(n)

    def work(rows: slice) -> None:
        values[rows].sum(axis=1, out=sums[rows])

    run_pieces(work, pieces(n, max(1, (1 << 20) // max(k, 1))), values.size)
    return sums
