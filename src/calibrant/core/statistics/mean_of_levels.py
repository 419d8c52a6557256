"""The mean of rows that take few values, such as costs: its interval counts values that no row happened to show."""

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.weighted import is_whole
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate, Levels


def mean_of_levels(p: Predictions, rows: Array, possible: Array) -> Estimate:
    """The weighted mean of `rows` (n,), of which each could have taken any of the values `possible`.

    >>> p = Predictions.binary([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> never = mean_of_levels(p, np.zeros(4), np.array([0.0, 50.0])).interval()  # nothing was paid
    >>> never.low, round(never.high / 50, 4)  # 0.6024 = 1 - 0.025 ** (1 / 4)
    (0.0, 0.6024)
    >>> once = mean_of_levels(p, np.array([0.0, 0.0, 0.0, 50.0]), np.array([0.0, 50.0])).interval()
    >>> round(once.low / 50, 4), round(once.high / 50, 4)  # Clopper and Pearson, 1 of 4
    (0.0063, 0.8059)
    """
    values, at = np.unique(rows, return_inverse=True)
    share, count = _shares(p, at, len(values))
    usual = values[share.argmax()]
    unseen = np.setdiff1d(possible, values)  # of these together no row was seen, so the dearest stands for all
    least, most = float(unseen.min(initial=usual)), float(unseen.max(initial=usual))
    clusters = None if p.clusters is None else len(np.unique(p.clusters))
    noise = Levels(
        values=values,
        shares=share,
        counts=count,
        unseen=(least, most),
        rows=p.n_effective if clusters is None else clusters,
        clusters=clusters,
    )
    bounds = min(float(values[0]), least), max(float(values[-1]), most)
    return Estimate(value=float(values @ share), noise=noise, bounds=bounds)


def _shares(p: Predictions, at: Ints, levels: int) -> tuple[Array, Array]:
    """The share of rows at each level, and the number of independent rows that would give it the same variance."""
    w = np.ones(p.n) if p.weights is None else np.asarray(p.weights, dtype=np.float64)
    total = w.sum()
    share = np.bincount(at, w, minlength=levels) / total
    if p.clusters is None and (p.weights is None or is_whole(w)):
        return share, np.full(levels, p.n_effective)
    if p.clusters is None:
        squares = np.bincount(at, w**2, minlength=levels)
        variance = ((1 - 2 * share) * squares + share**2 * (w @ w)) / total**2
    else:
        size = np.bincount(p.clusters, w)
        sums = (np.bincount(p.clusters, w * (at == i)) - share[i] * size for i in range(levels))
        variance = np.array([(residuals @ residuals) / total**2 for residuals in sums])
    return share, np.minimum(share * (1 - share) / np.maximum(variance, 1e-300), float(p.n))
