"""Row numbers of an index, and random splits of rows that keep clusters together."""

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Integers, Ints
from calibrant.core.errors import InputError


def row_numbers(index: npt.ArrayLike, n: int) -> Ints:
    """The row numbers, out of n, of an index: numbers, or a mask."""
    i = np.asarray(index)
    if i.ndim != 1 or (i.dtype == bool and len(i) != n):
        raise InputError("take", expected=f"row numbers or a mask of {n}", got=f"shape {i.shape}", fix="give one list")
    rows = np.flatnonzero(i) if i.dtype == bool else i
    if len(rows) == 0:
        raise InputError("take", expected="at least one row", got="none", fix="give a longer index")
    return rows


def split_rows(n: int, fraction: float, seed: int, clusters: Integers | None) -> tuple[Ints, Ints]:
    """Two disjoint random parts of n rows, the first holding `fraction` of them, each in order."""
    first = round(n * fraction)
    if not 0 < first < n:
        raise InputError(
            "split",
            expected="a fraction that leaves rows on both sides",
            got=f"{fraction} of {n} rows",
            fix="use a fraction strictly between 0 and 1",
        )
    shuffled = np.random.default_rng(seed).permutation(n)
    if clusters is not None:  # rows that came together stay together
        place = np.empty(n, dtype=np.int64)
        place[shuffled] = np.arange(n)
        begins = np.full(int(clusters.max()) + 1, n)
        np.minimum.at(begins, clusters, place)
        shuffled = np.lexsort((place, begins[clusters]))
        ends = np.append(np.flatnonzero(np.diff(clusters[shuffled])) + 1, n)
        first = int(ends[np.abs(ends[:-1] - first).argmin()]) if len(ends) > 1 else first
    return np.sort(shuffled[:first]), np.sort(shuffled[first:])
