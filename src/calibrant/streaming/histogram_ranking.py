"""Measures of ranking from a fine histogram of scores, with bounds for the unknown order inside bins."""

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.weighted import WeightedCurve
from calibrant.measures import OfCurve
from calibrant.streaming.sums import fine_scores

DRAWS = 200


def ranking_value(m: OfCurve, fine: Array) -> tuple[float, float]:
    """Compute a ranking from the weights of outcomes 1 and 0 per bin of log-odds, (2, bins), and its largest error.

    The error is the distance to the values for the worst and the best order of rows inside every bin.

    >>> from calibrant.measures import make
    >>> fine = np.zeros((2, 4096))
    >>> fine[0, [10, 3000]], fine[1, [10, 50]] = 1, 1  # ones in bins 10 and 3000, zeros in 10 and 50
    >>> ranking_value(make("auroc_correct"), fine)
    (0.625, 0.125)
    """
    value, *ends = (m.from_curve(_curve(fine[0], fine[1], shift)) for shift in (0, -1, 1))
    return value, max(max(ends) - value, value - min(ends))


def ranking_noise(m: OfCurve, sums: Array, squares: Array | None, rng: np.random.Generator) -> Array:
    """What resampling rows does to the measure: the number of rows in each bin is drawn, or their weight."""
    values = []
    for _ in range(DRAWS):
        if squares is None:
            ones, zeros = (rng.poisson(part).astype(np.float64) for part in sums)
        else:
            ones, zeros = np.maximum(sums + rng.standard_normal(sums.shape) * np.sqrt(np.maximum(squares, 0.0)), 0.0)
        values.append(m.from_curve(_curve(ones, zeros, 0)))
    return np.array(values) - m.from_curve(_curve(sums[0], sums[1], 0))


def _curve(ones: Array, zeros: Array, shift: int) -> WeightedCurve:
    """Curve of ones and zeros as weighted rows; a shift puts the ones of a bin above (1) or below (-1) its zeros."""
    n = len(ones)
    place = np.concatenate([np.arange(n) + shift / 4, np.arange(n) - shift / 4])
    rank = np.argsort(place, kind="stable")
    score = (place + 1) / (n + 1) if shift else np.tile(fine_scores(n), 2)
    weights, which = np.concatenate([ones, zeros])[rank], np.concatenate([np.ones(n), np.zeros(n)])[rank]
    filled = weights > 0
    return WeightedCurve(score[rank][filled], which[filled], np.arange(int(filled.sum())), weights[filled])
