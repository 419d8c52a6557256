"""The standard error of a mean of one number per row: weights count, and rows of one cluster come together."""

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.weighted import is_whole
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Normal


def standard_error(p: Predictions, apart: Array) -> float:
    """Standard error of a weighted mean, from the distance of each row (or cluster of rows) from it.

    >>> p = Predictions.binary([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> standard_error(p, np.array([-0.5, -0.5, 0.5, 0.5]))  # 0.5 / 2
    0.25
    """
    w = np.ones(p.n) if p.weights is None else p.weights
    if p.clusters is not None:
        return float(np.sqrt((np.bincount(p.clusters, w * apart) ** 2).sum()) / w.sum())
    counts = p.weights is None or is_whole(w)
    return float(np.sqrt((w if counts else w * w) @ apart**2) / w.sum())


def skewed_noise(p: Predictions, rows: Array) -> Normal:
    """The noise of a weighted mean of rows with a long tail, with its skewness.

    >>> p = Predictions.binary([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> interval = skewed_noise(p, np.array([0.0, 0.0, 0.0, 4.0])).ends(1.0, 0.05)  # 1 + 0.401 -+ 1.645
    >>> round(interval.low, 3), round(interval.high, 3)
    (-0.244, 3.046)
    """
    apart = rows - p.mean(rows)  # and in place from here on: rows may be many
    if p.weights is not None:
        apart *= p.weights
    apart /= p.n if p.weights is None else p.weights.sum()
    apart = apart if p.clusters is None else np.bincount(p.clusters, apart).astype(np.float64)
    error = float(np.sqrt((apart**2).sum() * len(apart) / (len(apart) - 1)))
    return Normal(error=error, skewness=float((apart**3).sum()) / error**3 if error else 0.0)
