"""Sorted confidences for a page: small enough to embed, exact enough that a browser finds the numbers of the measures.

A page holds "atoms": groups of rows with one confidence, how many they are and how many of them are right. Bins of
equal width are exact for every number of bins from 5 to 500, because rounding never moves a row across any of their
edges. Bins of equal mass are exact too, up to EXACT_ROWS rows; above, neighbours are pooled.
"""

import base64
from functools import cache

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.binning import equal_width_edges
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import is_whole

SCALE = 1 << 28  # confidences are multiples of 1 / SCALE: four bytes of seven bits
EXACT_ROWS = 50_000
SHARES = 1000  # parts of a row, where weights are no whole numbers
POOLS = 2000  # at least as many pools of about equal size above EXACT_ROWS
FEWEST_BINS, MOST_BINS = 5, 500

Bytes = npt.NDArray[np.uint8]


def pack(curve: Curve, threshold: float | None = None) -> str:
    """The atoms of a curve as text: differences of confidences and counts, seven bits to a byte, in base 64.

    No atom has rows on both sides of the threshold.
    """
    ends = curve.group_ends if curve.n <= EXACT_ROWS else _pools(curve, threshold)
    weight, scale = np.diff(curve.weight_sum[ends], prepend=0.0), unit(curve)
    count = (scale * weight).round().astype(np.int64)
    positives = np.minimum((scale * np.diff(curve.outcome_sum[ends], prepend=0.0)).round().astype(np.int64), count)
    mean = np.diff(curve.cum_scores[ends], prepend=0.0) / weight
    visible_pools = count > 0  # of nearly no weight nothing can be seen
    codes = _codes(mean, curve.scores[ends - 1])[visible_pools]
    count, positives = count[visible_pools], positives[visible_pools]
    # A single row is one number, its outcome 0 or 1. Several rows are their count, 2 or more, and then their positives.
    single = count == 1
    fields = np.stack([np.diff(codes, prepend=0), np.where(single, positives, count), positives], axis=1)
    used = np.stack([np.ones_like(single), np.ones_like(single), ~single], axis=1)
    return base64.b64encode(_varints(fields[used]).tobytes()).decode("ascii")


def unit(curve: Curve) -> int:
    """The count of a row of weight 1 on the page: 1 where weights count rows, more where they are shares of them."""
    return 1 if is_whole(curve.weights) else SHARES


def _pools(curve: Curve, threshold: float | None = None) -> Ints:
    """Ends of pools: at every edge of any binning and at the threshold, and often enough in between; never in ties."""
    ends = curve.group_ends
    cells = np.searchsorted(every_edge(), curve.scores[ends - 1], side="left")
    parts = (ends - 1) * POOLS // curve.n
    above = curve.scores[ends - 1] >= (2.0 if threshold is None else threshold)
    last = np.append((np.diff(cells) > 0) | (np.diff(parts) > 0) | np.diff(above), True)
    return np.asarray(ends[last])


def _codes(mean: Array, member: Array) -> Ints:
    """Rounded mean confidences, ascending, each on the same side of every bin edge as the members."""
    edges = every_edge()
    codes = np.rint(mean * SCALE).astype(np.int64)
    cell, moved = (np.searchsorted(edges, values, side="left") for values in (member, codes / SCALE))
    codes += np.sign(cell - moved)  # edges are at least 4e-6 apart, a thousand steps of the rounding
    return np.maximum.accumulate(np.clip(codes, 0, SCALE))


@cache
def every_edge() -> Array:
    """All edges strictly between 0 and 1 of bins of equal width, for any number of bins a reader can choose."""
    edges = [equal_width_edges(bins)[1:-1] for bins in range(FEWEST_BINS, MOST_BINS + 1)]
    return np.unique(np.concatenate(edges))


def _varints(numbers: Ints) -> Bytes:
    """Seven bits to a byte, the lowest first; the high bit says that more follow."""
    length = np.ones(len(numbers), dtype=np.int64)
    for bits in (7, 14, 21, 28, 35):
        length += numbers >> bits > 0
    start = np.cumsum(length) - length
    place = np.arange(length.sum()) - np.repeat(start, length)
    digits = (np.repeat(numbers, length) >> (7 * place)) & 127
    more = place < np.repeat(length, length) - 1
    return np.asarray(digits | more * 128, dtype=np.uint8)
