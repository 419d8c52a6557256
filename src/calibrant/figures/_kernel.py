"""Smooth curves on [0, 1] from any number of rows: Gaussians reflected at both ends, on a small grid."""

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.kernels import MODES_PER_SIGMA, cosine_sums, heat

POINTS = 256  # of a curve: two a pixel


def grid() -> Array:
    """The middles of 256 equal parts."""
    return (np.arange(POINTS) + 0.5) / POINTS


def smooth(scores: Array, weights: list[Array], sigma: float) -> list[Array]:
    """Sums of w_i K(t, c_i) at the grid for each row of weights, K a density in t."""
    modes = int(np.ceil(MODES_PER_SIGMA / sigma)) + 1
    points = POINTS
    while points < modes:
        points *= 3  # the middle of every third finer cell is the middle of a coarser one
    step = points // POINTS
    return [heat(cosine_sums(scores, row, modes), sigma, points)[step // 2 :: step] for row in weights]
