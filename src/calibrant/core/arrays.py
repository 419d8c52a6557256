"""Array types, and functions for any array."""

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.parallel import pieces, run_pieces

COPIED_AT_ONCE = 1 << 18  # elements

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]  # float32 or float64, as the user gave it
Ints = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer[Any]]  # of as many bytes as they need


def is_text(array: npt.NDArray[Any]) -> bool:
    """Whether an array of strings holds characters only: a file may claim that any bytes are text."""
    codes = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).view(np.uint32)
    surrogate = (codes >= 0xD800) & (codes < 0xE000)
    return bool(np.all((codes <= 0x10FFFF) & ~surrogate))


def lock(first: npt.NDArray[Any], *more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make arrays read-only, because several views share them; returns the first."""
    for array in (first, *more):
        array.flags.writeable = False
    return first


def own(array: npt.NDArray[Any], given: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in memory that nobody else writes to: a copy where it may lie in that of `given`, unless that is fixed.

    >>> given = np.zeros(3)
    >>> own(given[:2], given).base is None, own(given + 1, given).base is None
    (True, True)
    """
    if not np.may_share_memory(array, given) or _is_fixed(given):
        return array
    copy = np.empty_like(array, order="C", subok=False)

    def work(rows: slice) -> None:
        copy[rows] = array[rows]

    run_pieces(work, pieces(len(array), max(1, COPIED_AT_ONCE * len(array) // max(array.size, 1))), array.size)
    return copy


def _is_fixed(array: npt.NDArray[Any]) -> bool:
    """Whether nothing can write to the memory of an array: it is read-only, and so is all that it is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    try:
        return base is None or memoryview(base).readonly
    except TypeError:  # memory of another package
        return False


def rows_of(groups: npt.NDArray[Any]) -> dict[str, Ints]:
    """The rows of each group, ascending; the groups in the order in which they appear.

    >>> rows_of(np.array(["b", "a", "b"]))
    {'b': array([0, 2]), 'a': array([1])}
    """
    names, first, group = np.unique(groups, return_index=True, return_inverse=True)
    rows_by_group = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    return {str(names[g]): rows_by_group[g] for g in np.argsort(first)}
