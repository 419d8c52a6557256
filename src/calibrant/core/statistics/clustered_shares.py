"""How many independent rows the rows of clusters are worth, for intervals of shares."""

import numpy as np

from calibrant.core.arrays import Array, Integers
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.fewest_rows import too_few_rows

TAIL = 0.025  # at which Student's quantile stands for the uncertain variance of few clusters


def effective_rows(p: Predictions) -> float:
    """The number of independent rows that would show the mean outcome as exactly: by weights, and by clusters."""
    rows = max(p.curve.total * p.curve.weight_unit, 1e-9)
    if p.clusters is None:
        return rows
    return min(rows, float(rows_of_clusters(p.outcome.astype(np.float64), p.weights, p.clusters)[0]))


def rows_of_clusters(
    outcomes: Array,
    weights: Array | None,
    clusters: Integers,
    bin_of: Integers | None = None,
    bins: int = 1,
) -> Array:
    """The number of independent rows whose share of outcomes in each bin has the variance of rows in clusters, (bins,).

    The variance is that of the sums of whole clusters, which few clusters estimate badly: they count less, by Student's
    quantile (Korn, Graubard, Survey Methodology 1998). Where all outcomes are alike, each cluster counts as one row.

    >>> outcomes, clusters = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 1, 2, 2])
    >>> rows_of_clusters(outcomes, None, clusters).round(2), rows_of_clusters(np.ones(6), None, clusters)
    (array([0.93]), array([3.]))
    """
    from scipy.special import ndtri, stdtrit

    place = np.zeros(len(outcomes), dtype=np.int64) if bin_of is None else bin_of.astype(np.int64)
    w = np.ones(len(outcomes)) if weights is None else np.asarray(weights, dtype=np.float64)
    total, positives = (np.bincount(place, values, bins) for values in (w, w * outcomes))
    rate = np.divide(positives, total, out=np.zeros(bins), where=total > 0)
    count = int(clusters.max(initial=0)) + 1
    cells, cell_of = np.unique(place * count + clusters, return_inverse=True)
    square = np.bincount(cells // count, np.bincount(cell_of, w * (outcomes - rate[place])) ** 2, bins)
    units = np.bincount(cells // count, minlength=bins).astype(np.float64)
    few = (ndtri(TAIL) / stdtrit(np.maximum(units - 1, 1), TAIL)) ** 2
    vary = square > 1e-12 * np.maximum(total, 1) ** 2 * rate * (1 - rate)
    rows = few * total**2 * rate * (1 - rate) / np.where(vary, square, 1.0)
    return np.asarray(np.where(vary, rows, units))


def cluster_obstacle(p: Predictions) -> str | None:
    """Why the clusters of these rows give shares no interval; None where they do."""
    return None if p.clusters is None else too_few_rows(int(p.clusters.max()) + 1, clusters=True)
