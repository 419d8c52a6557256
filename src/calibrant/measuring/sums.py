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
    """Of every class, (5, k, bins)."""
    check_bins(m.bins, p.k)
    cells = p.k * m.bins
    made, first = np.zeros((SUMS, cells)), m.bins * np.arange(p.k)
    for rows, probs in p.prob_rows():
        place = bin_of(probs, m.bins, m.closed)
        place += first
        at_label = np.arange(len(probs)), p.labels[rows]
        own, mine = place[at_label], probs[at_label]
        cell, score = place.ravel(), probs.ravel()
        w = None if weights is None else weights[rows]
        each = None if w is None else np.repeat(w, p.k)

        def sums(values: Array | None, cell: Ints = cell) -> Array:
            return np.bincount(cell, values, cells).astype(np.float64)

        if w is None or each is None:
            made[:3] += sums(None), sums(score), sums(None, own)
            made[3] += sums(score**2) + sums(1 - 2 * mine, own)
        else:
            made[:3] += sums(each), sums(each * score), sums(w, own)
            made[3] += sums((each * score) ** 2) + sums(w**2 * (1 - 2 * mine), own)
            made[4] += sums(each**2 * score) - sums(w**2, own)
    if weights is None:
        made[4] = made[1] - made[2]
    return made.reshape(SUMS, p.k, m.bins)


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
