"""Sums of weights, scores, outcomes and squared residuals over the rows of a batch, in equal-width bins.

Squares are those of the units that were drawn: of rows, or of the sums over the rows of a cluster.
"""

from collections.abc import Iterable

import numpy as np

from calibrant.core.arrays import Array, Integers, Ints
from calibrant.core.curves.binning import Closed, check_bins, equal_width_edges
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.sampling import Entries
from calibrant.measures import ClassMeasure

FINE = 65536  # bins of the histogram for measures of ranking: what their order may be off by is less than noise
COARSE = 4096  # and for their noise, and for figures
MOST_LOG_ODDS = 16.0  # its bins have equal width in log-odds, from minus this to this
HISTOGRAM_BINS = 100  # equal-width bins of the histogram of scores
SUMS = 5  # weight, score, outcomes, squared residuals, residuals times weights (the last two by unit)


def bin_of(scores: Array, bins: int, closed: Closed) -> Ints:
    """The bin of each score, by the edges of `equal_width_edges`.

    >>> bin_of(np.array([0.0, 0.2, 0.21, 1.0]), 5, "right"), bin_of(np.array([0.0, 0.2, 0.21, 1.0]), 5, "left")
    (array([0, 0, 1, 4]), array([0, 1, 1, 4]))
    """
    edges = equal_width_edges(bins)
    place = (scores * bins).astype(np.int64)  # one off where the product was rounded, or a score is on an edge
    if closed == "right":
        place -= scores <= edges[place]
        return np.maximum(place, 0, out=place)
    place = np.minimum(place, bins - 1)
    place += scores >= edges[place + 1]
    place = np.minimum(place, bins - 1)
    place -= scores < edges[place]
    return place


def score_sums(scores: Array, outcomes: Array, weights: Array | None, bins: int, closed: Closed) -> Array:
    """The sums for one score per row, each a unit, (5, bins)."""
    check_bins(bins)
    place, off = bin_of(scores, bins, closed), scores - outcomes

    def sums(values: Array | None) -> Array:
        return np.bincount(place, values, bins).astype(np.float64)

    if weights is None:
        count, score, outcome = sums(None), sums(scores), sums(outcomes)
        return np.stack([count, score, outcome, sums(off**2), score - outcome])
    w, square = weights, weights**2
    return np.stack([sums(w), sums(w * scores), sums(w * outcomes), sums(square * off**2), sums(square * off)])


def class_sums(p: Predictions, weights: Array | None, m: ClassMeasure) -> Array:
    """The sums for every class, with rows as units, (5, k, bins).

    Most probabilities are in the first bin: only the others are binned, and the first bin gets the rest.
    """
    check_bins(m.bins, p.k)
    sums = np.zeros((SUMS, p.k, m.bins))
    first_edge = equal_width_edges(m.bins)[1]
    for rows, probs in p.prob_rows():
        labels, w = p.labels[rows], None if weights is None else weights[rows]
        mine = probs[np.arange(len(probs)), labels]
        own = m.bins * labels + bin_of(mine, m.bins, m.closed)
        high = np.flatnonzero(probs > first_edge if m.closed == "right" else probs >= first_edge)
        score, column = probs.ravel()[high], high % p.k
        cell = m.bins * column + bin_of(score, m.bins, m.closed)
        each = None if w is None else w[high // p.k]
        sums += _block_sums(probs, w, (cell, score, each), (own, mine), m.bins)
    return sums


def _block_sums(
    probs: Array,
    w: Array | None,
    high: tuple[Ints, Array, Array | None],
    label: tuple[Ints, Array],
    bins: int,
) -> Array:
    """The sums of one block: of all columns, minus the part above the first bin, plus the outcomes."""
    n, k = probs.shape
    cell, score, each = high
    own, mine = label
    w2, each2 = None if w is None else w**2, None if each is None else each**2

    def bin_sums(place: Ints, values: Array | None) -> Array:
        return np.bincount(place, values, k * bins).reshape(k, bins).astype(np.float64)

    def times(values: Array, by: Array | None) -> Array:
        return values if by is None else values * by

    def whole(total: Array, above: Array) -> Array:
        above[:, 0] = np.maximum(total - above[:, 1:].sum(axis=1), 0.0)
        return above

    ones, ones2 = (np.ones(n), np.ones(n)) if w is None or w2 is None else (w, w2)
    count = whole(np.full(k, ones.sum()), bin_sums(cell, each))
    scores = whole(ones @ probs, bin_sums(cell, times(score, each)))
    outcomes = bin_sums(own, w)
    square = whole(np.einsum("i,ij,ij->j", ones2, probs, probs), bin_sums(cell, times(score**2, each2)))
    square += bin_sums(own, times(1 - 2 * mine, w2))
    cross = scores - outcomes
    if w2 is not None:
        cross = whole(ones2 @ probs, bin_sums(cell, times(score, each2))) - bin_sums(own, w2)
    return np.stack([count, scores, outcomes, square, cross])


def unit_sums(values: Array, weights: Array | None, clusters: Integers | None) -> Array:
    """The weighted sum over each unit that was drawn: a row, or the rows of a cluster."""
    weighted = values if weights is None else weights * values
    return weighted if clusters is None else np.bincount(clusters, weighted).astype(np.float64)


def row_sums(values: Array, weights: Array | None, clusters: Integers | None) -> Array:
    """The sums for one number per row: the sum and, over units, the sums of its square and of it times weight, (3,)."""
    total, weight = unit_sums(values, weights, clusters), unit_sums(np.ones(len(values)), weights, clusters)
    return np.array([total.sum(), total @ total, total @ weight])


def ratio_sums(above: Array, below: Array, weights: Array | None, clusters: Integers | None) -> Array:
    """The sums for a ratio of two numbers per row: of both and, over units, of their three products, (5,)."""
    a, b = unit_sums(above, weights, clusters), unit_sums(below, weights, clusters)
    return np.array([a.sum(), b.sum(), a @ a, a @ b, b @ b])


def cluster_sums(entries: Iterable[Entries], weights: Array | None, clusters: Integers, cells: int) -> Array:
    """Over clusters, the sums of products of the residuals in each two cells and, last, with the weight of the cluster.

    (cells + 1, cells). A row of its own is in one cell, so that only clusters have products of two.
    """
    from scipy.sparse import csr_array

    count = int(clusters.max()) + 1
    residuals = csr_array((count, cells))
    for row, cell, off in entries:
        weighted = off if weights is None else weights[row] * off
        residuals += csr_array((weighted, (clusters[row], cell)), shape=(count, cells))
    weight = unit_sums(np.ones(len(clusters)), weights, clusters)
    return np.vstack([(residuals.T @ residuals).toarray(), weight @ residuals])


def fine_sums(scores: Array, outcomes: Array, weights: Array | None) -> Array:
    """The weight of outcomes 1 and of outcomes 0 in bins of log-odds, (2, FINE)."""
    with np.errstate(divide="ignore"):
        odds = np.log(scores) - np.log1p(-scores)
    place = np.clip((odds + MOST_LOG_ODDS) * (FINE / (2 * MOST_LOG_ODDS)), 0, FINE - 1).astype(np.int64)
    w = np.ones(len(scores)) if weights is None else weights
    return np.stack([np.bincount(place, values, FINE) for values in (w * outcomes, w * (1 - outcomes))])


def fine_scores(bins: int = FINE) -> Array:
    """The score at the centre of each bin of log-odds, (bins,)."""
    odds = (np.arange(bins) + 0.5) * (2 * MOST_LOG_ODDS / bins) - MOST_LOG_ODDS
    return np.asarray(1 / (1 + np.exp(-odds)))


def coarsen(fine: Array) -> Array:
    """The same sums in fewer bins, (2, COARSE)."""
    return np.asarray(fine.reshape(2, COARSE, -1).sum(axis=2))
