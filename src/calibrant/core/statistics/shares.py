"""Intervals of shares that keep their coverage in small samples: Wilson, and Clopper and Pearson."""

from statistics import NormalDist

import numpy as np

from calibrant.core.arrays import Array


def wilson(share: Array | float, count: Array | float, level: float = 0.95) -> tuple[Array, Array]:
    """The score interval of a share among `count` rows: never empty, never outside [0, 1].

    >>> low, high = wilson(np.array([1.0, 0.5]), np.array([10.0, 100.0]))
    >>> low.round(3), high.round(3)
    (array([0.722, 0.404]), array([1.   , 0.596]))
    """
    share, count = np.asarray(share, dtype=np.float64), np.asarray(count, dtype=np.float64)
    z = NormalDist().inv_cdf((1 + level) / 2)
    centre = share + z * z / (2 * count)
    half = z * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    below = 1 + z * z / count
    return np.maximum((centre - half) / below, 0.0), np.minimum((centre + half) / below, 1.0)


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


def unseen_rate(rows: float, tail: float) -> float:
    """The largest rate of an event that `rows` independent rows without one leave possible (Clopper and Pearson, 1934).

    >>> round(unseen_rate(15, 0.025), 3)
    0.218
    """
    return float(1 - tail ** (1 / rows))
