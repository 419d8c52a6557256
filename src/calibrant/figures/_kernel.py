"""Smooth curves on [0, 1] from any number of rows: Gaussians reflected at both ends, on a small grid."""

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curve import Curve
from calibrant.core.kernels import cosine_sums, heat

POINTS = 256  # of a curve: two a pixel
NARROWEST = 0.001  # bandwidth
MODES_PER_SIGMA = 2.75  # what is damped below 1e-16 behind this many modes is left out
FINE = 4096  # grid the error is summed on


def grid() -> Array:
    """The middles of 256 equal parts."""
    return (np.arange(POINTS) + 0.5) / POINTS


def smoothed(scores: Array, weights: list[Array], sigma: float) -> list[Array]:
    """For each row of weights, sum of w_i K(t, c_i) at the grid, K a density in t."""
    modes = int(np.ceil(MODES_PER_SIGMA / sigma)) + 1
    points = POINTS
    while points < modes:
        points *= 3  # the middle of every third finer cell is the middle of a coarser one
    step = points // POINTS
    return [heat(cosine_sums(scores, row, modes), sigma, points)[step // 2 :: step] for row in weights]


def smooth_error(curve: Curve) -> tuple[float, float]:
    """The smooth calibration error and its bandwidth, which is where both are equal (0.001 at least)."""
    residual = (curve.scores - curve.hits) / curve.n
    coarse, least = cosine_sums(curve.scores, residual, 256), MODES_PER_SIGMA / 256
    if _error(coarse, least) > least:
        return _fixed_point(coarse, least)
    return _fixed_point(cosine_sums(curve.scores, residual, int(MODES_PER_SIGMA / NARROWEST)), NARROWEST)


def _error(coefficients: Array, sigma: float) -> float:
    points = max(FINE, 1 << int(np.ceil(np.log2(20 / sigma))))
    modes = min(len(coefficients), int(np.ceil(MODES_PER_SIGMA / sigma)) + 1)
    return float(np.abs(heat(coefficients[:modes], sigma, points)).mean())


def _fixed_point(coefficients: Array, low: float) -> tuple[float, float]:
    """The error never rises with sigma, so halving finds where it equals sigma."""
    high = 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if _error(coefficients, middle) <= middle:
            high = middle
        else:
            low = middle
    return _error(coefficients, high), high
