"""The mean of rows that take few values, such as costs: its interval counts values that no row happened to show.

A mean of rows with the values c is the sum of c times the share of rows with each. Every share has the interval of
Clopper and Pearson, with the effective number of rows where they have weights or come in clusters (Korn, Graubard,
Survey Methodology 1998), and the ends are put together by their distances from the shares (MOVER: Zou, Donner,
Statistics in Medicine 2008). A normal interval is too narrow where a cost rests on a handful of rows, and has no width
where the dear outcome was not seen at all.
"""

from typing import NamedTuple

import numpy as np

from calibrant.core.arrays import Array, Integers, Ints
from calibrant.core.curves.weighted import is_whole
from calibrant.core.predictions import Predictions


class Mean(NamedTuple):
    """A mean with its interval."""

    value: float
    low: float
    high: float


def mean_of_levels(p: Predictions, rows: Array, possible: Array, level: float = 0.95) -> Mean:
    """The weighted mean of `rows` (n,), of which each could have taken any of the values `possible`.

    >>> p = Predictions.binary([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> never = mean_of_levels(p, np.zeros(4), np.array([0.0, 50.0]))  # nothing was paid; 0.6024 = 1 - 0.025 ** (1 / 4)
    >>> never.low, round(never.high / 50, 4)
    (0.0, 0.6024)
    >>> once = mean_of_levels(p, np.array([0.0, 0.0, 0.0, 50.0]), np.array([0.0, 50.0]))  # Clopper and Pearson, 1 of 4
    >>> round(once.low / 50, 4), round(once.high / 50, 4)
    (0.0063, 0.8059)
    """
    values, at = np.unique(rows, return_inverse=True)
    share, count = _shares(p, at, len(values), level)
    usual = int(share.argmax())
    mean = float(values @ share)
    unseen = np.setdiff1d(possible, values)  # of these together no row was seen, so the dearest stands for all
    ends = [unseen.min(initial=values[usual]), unseen.max(initial=values[usual])]
    others = np.arange(len(values)) != usual
    cost = np.append(values[others], ends) - values[usual]
    share = np.append(share[others], [0.0, 0.0])
    units = p.effective if p.clusters is None else _worth(p.clusters, level) * len(np.unique(p.clusters))
    below, above = clopper_pearson(share, np.append(count[others], [units, units]), level)
    low, high = cost * below, cost * above
    apart = np.sqrt(share / (1 - share))
    together = -np.outer(apart, apart) * np.outer(np.sign(cost), np.sign(cost))  # shares crowd each other out
    np.fill_diagonal(together, 1.0)

    def half(distance: Array) -> float:
        return float(np.sqrt(max(distance @ together @ distance, 0.0)))

    down, up = cost * share - np.minimum(low, high), np.maximum(low, high) - cost * share
    least, most = float(min(values[0], ends[0])), float(max(values[-1], ends[1]))
    return Mean(mean, max(mean - half(down), least), min(mean + half(up), most))


def clopper_pearson(share: Array, count: Array, level: float) -> tuple[Array, Array]:
    """Ends of the interval of each share among `count` rows: at least this level, whatever the true share.

    >>> low, high = clopper_pearson(np.array([0.0, 0.25]), np.array([4.0, 4.0]), 0.95)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.0063]), array([0.6024, 0.8059]))
    """
    from scipy.special import betaincinv

    tail, selected = (1 - level) / 2, share * count
    some, all_but = np.maximum(selected, 1e-9), np.maximum(count - selected, 1e-9)
    low = np.where(selected > 1e-9, betaincinv(some, all_but + 1, tail), 0.0)
    high = np.where(count - selected > 1e-9, betaincinv(some + 1, all_but, 1 - tail), 1.0)
    return np.asarray(low), np.asarray(high)


def _shares(p: Predictions, at: Ints, levels: int, level: float) -> tuple[Array, Array]:
    """The share of rows at each level, and the number of independent rows that would give it the same variance."""
    w = np.ones(p.n) if p.weights is None else np.asarray(p.weights, dtype=np.float64)
    total = w.sum()
    share = np.bincount(at, w, minlength=levels) / total
    if p.clusters is None and (p.weights is None or is_whole(w)):
        return share, np.full(levels, p.effective)
    if p.clusters is None:
        squares = np.bincount(at, w**2, minlength=levels)
        variance, fewer = ((1 - 2 * share) * squares + share**2 * (w @ w)) / total**2, 1.0
    else:
        size = np.bincount(p.clusters, w)
        sums = (np.bincount(p.clusters, w * (at == i)) - share[i] * size for i in range(levels))
        variance, fewer = (
            np.array([(residuals @ residuals) / total**2 for residuals in sums]),
            _worth(p.clusters, level),
        )
    count = share * (1 - share) / np.maximum(variance, 1e-300)
    return share, fewer * np.minimum(count, float(p.n))


def _worth(clusters: Integers, level: float) -> float:
    """The factor by which few clusters reduce the effective number of rows: their variance is itself an estimate."""
    from scipy.special import stdtrit

    tail = (1 + level) / 2
    return float((stdtrit(np.inf, tail) / stdtrit(max(len(np.unique(clusters)) - 1, 1), tail)) ** 2)
