"""What an accumulator adds up, without sorting: sums of weights, scores, hits and squares in bins of equal width."""

from typing import Any

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curve import check_bins, equal_width_edges
from calibrant.core.predictions import Predictions
from calibrant.measures import ClassMeasure

FINE = 4096  # bins of the histogram that rankings are read from
STEEPEST = 16.0  # its bins are equally wide in log-odds, up to here on both sides
SUMS = 5  # weight, score, hits, squared residuals, residuals (these two by squared weights)


def bin_of(scores: Array, bins: int, closed: Any) -> Ints:
    """The bin of each score, by the same edges as everywhere.

    >>> bin_of(np.array([0.0, 0.2, 0.21, 1.0]), 5, "right"), bin_of(np.array([0.0, 0.2, 0.21, 1.0]), 5, "left")
    (array([0, 0, 1, 4]), array([0, 1, 1, 4]))
    """
    edges = equal_width_edges(bins)
    place = (scores * bins).astype(np.int64)  # one off where the product was rounded, or a score stands on an edge
    if closed == "right":
        place -= scores <= edges[place]
        return np.maximum(place, 0, out=place)
    place = np.minimum(place, bins - 1)
    place += scores >= edges[place + 1]
    place = np.minimum(place, bins - 1)
    place -= scores < edges[place]
    return place


def score_sums(scores: Array, hits: Array, weights: Array | None, bins: int, closed: Any) -> Array:
    """Of one score per row, (5, bins)."""
    check_bins(bins)
    place, off = bin_of(scores, bins, closed), scores - hits

    def sums(values: Array | None) -> Array:
        return np.bincount(place, values, bins).astype(np.float64)

    if weights is None:
        count, score, hit = sums(None), sums(scores), sums(hits)
        return np.stack([count, score, hit, sums(off**2), score - hit])
    w, square = weights, weights**2
    return np.stack([sums(w), sums(w * scores), sums(w * hits), sums(square * off**2), sums(square * off)])


def class_sums(p: Predictions, weights: Array | None, m: ClassMeasure) -> Array:
    """Of every class, (5, k, bins).

    Most probabilities stand in the first bin: only the others are sorted into bins, and the first gets what is left.
    """
    check_bins(m.bins, p.k)
    made = np.zeros((SUMS, p.k, m.bins))
    first_edge = equal_width_edges(m.bins)[1]
    for rows, probs in p.prob_rows():
        labels, w = p.labels[rows], None if weights is None else weights[rows]
        mine = probs[np.arange(len(probs)), labels]
        own = m.bins * labels + bin_of(mine, m.bins, m.closed)
        high = np.flatnonzero(probs > first_edge if m.closed == "right" else probs >= first_edge)
        score, column = probs.ravel()[high], high % p.k
        cell = m.bins * column + bin_of(score, m.bins, m.closed)
        each = None if w is None else w[high // p.k]
        made += _gathered(probs, w, (cell, score, each), (own, mine), m.bins)
    return made


def _gathered(
    probs: Array,
    w: Array | None,
    high: tuple[Ints, Array, Array | None],
    label: tuple[Ints, Array],
    bins: int,
) -> Array:
    """The sums of one block: all columns, minus what stands above the first bin, plus what happened."""
    n, k = probs.shape
    cell, score, each = high
    own, mine = label
    w2, each2 = None if w is None else w**2, None if each is None else each**2

    def binned(place: Ints, values: Array | None) -> Array:
        return np.bincount(place, values, k * bins).reshape(k, bins).astype(np.float64)

    def times(values: Array, by: Array | None) -> Array:
        return values if by is None else values * by

    def whole(total: Array, above: Array) -> Array:
        above[:, 0] = np.maximum(total - above[:, 1:].sum(axis=1), 0.0)
        return above

    ones, ones2 = (np.ones(n), np.ones(n)) if w is None or w2 is None else (w, w2)
    count = whole(np.full(k, ones.sum()), binned(cell, each))
    scores = whole(ones @ probs, binned(cell, times(score, each)))
    hits = binned(own, w)
    square = whole(np.einsum("i,ij,ij->j", ones2, probs, probs), binned(cell, times(score**2, each2)))
    square += binned(own, times(1 - 2 * mine, w2))
    cross = scores - hits
    if w2 is not None:
        cross = whole(ones2 @ probs, binned(cell, times(score, each2))) - binned(own, w2)
    return np.stack([count, scores, hits, square, cross])


def row_sums(values: Array, weights: Array | None) -> Array:
    """Of one number per row: its sum, and by squared weights that of its square and its own, (3,)."""
    if weights is None:
        total = values.sum()
        return np.array([total, values @ values, total])
    square = weights**2
    return np.array([weights @ values, square @ values**2, square @ values])


def fine_sums(scores: Array, hits: Array, weights: Array | None) -> Array:
    """Weight of hits, of misses, and the same of squared weights, in bins of log-odds, (4, FINE)."""
    with np.errstate(divide="ignore"):
        odds = np.log(scores) - np.log1p(-scores)
    place = np.clip((odds + STEEPEST) * (FINE / (2 * STEEPEST)), 0, FINE - 1).astype(np.int64)
    w = np.ones(len(scores)) if weights is None else weights

    def sums(values: Array) -> Array:
        return np.bincount(place, values, FINE).astype(np.float64)

    made = [sums(w * hits), sums(w * (1 - hits))]
    squares = made if weights is None else [sums(w**2 * hits), sums(w**2 * (1 - hits))]
    return np.stack([*made, *squares])


def fine_scores() -> Array:
    """The score in the middle of each fine bin, (FINE,)."""
    odds = (np.arange(FINE) + 0.5) * (2 * STEEPEST / FINE) - STEEPEST
    return np.asarray(1 / (1 + np.exp(-odds)))
