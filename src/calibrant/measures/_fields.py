"""Noise of measures that read the whole curve: residuals in fine cells, from which any smooth field is made."""

import numpy as np

from calibrant.core.arrays import Array, Integers
from calibrant.core.curves.curve import Curve
from calibrant.core.statistics.sampling import NoisyValues, Sampling

CELLS = 500


def narrow_cells(curve: Curve, rows: Sampling) -> tuple[Array, Array, NoisyValues]:
    """Middles of cells of equal width, the share of rows in each, and the noisy residuals in each."""
    cell = np.minimum((curve.scores * CELLS).astype(np.int16), np.int16(CELLS - 1))
    share = np.bincount(cell, curve.weights, CELLS) / curve.total
    middles = (np.arange(CELLS) + 0.5) / CELLS
    return middles, share, rows.gather(lambda: curve.order, cell, curve.residuals, CELLS)


def running(curve: Curve, rows: Sampling) -> NoisyValues:
    """The running sum of residuals at up to CELLS places, equally many rows apart."""
    cells = min(CELLS, curve.n)
    sums = rows.gather(lambda: curve.order, cells_of_equal_size(curve.n, cells), curve.residuals, cells)
    return NoisyValues(np.cumsum(sums.value), np.cumsum(sums.noise, axis=1))


def cells_of_equal_size(n: int, cells: int) -> Integers:
    """The cell of each of n sorted rows, in two bytes each, equally many rows in each cell.

    >>> cells_of_equal_size(5, 2)
    array([0, 0, 0, 1, 1], dtype=int16)
    """
    starts = -(-np.arange(cells + 1) * n // cells)
    return np.repeat(np.arange(cells, dtype=np.int16), np.diff(starts))


def smooth(curve: Curve, sigma: float, rows: Sampling) -> NoisyValues:
    """Residuals smoothed by a Gaussian reflected at 0 and 1: the sum over points is the integral."""
    at, _, sums = narrow_cells(curve, rows)
    kernel = _gauss(at, at, sigma) + _gauss(at, -at, sigma) + _gauss(at, 2 - at, sigma)
    return sums.through(kernel / kernel.sum(axis=1, keepdims=True))


def local_gaps(curve: Curve, h: float, rows: Sampling) -> NoisyValues:
    """Residuals averaged over the neighbourhood of each cell by a Gaussian, weighed by the rows in the cell."""
    at, share, sums = narrow_cells(curve, rows)
    kernel = _gauss(at, at, h)
    return sums.through(kernel * np.divide(share, share @ kernel, out=np.zeros(CELLS), where=share > 0))


def _gauss(a: Array, b: Array, sigma: float) -> Array:
    """Gaussian kernel between every source (rows) and target (columns), at least as wide as a cell."""
    return np.asarray(np.exp(-0.5 * ((b[:, None] - a[None, :]) / max(sigma, 0.5 / CELLS)) ** 2))
