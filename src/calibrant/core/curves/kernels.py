"""Sums of Gaussian kernels over n points in O(n): no n x n matrix, and the error is known."""

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from calibrant.core.arrays import Array
from calibrant.core.curves.curve import BLOCK
from calibrant.core.parallel import pieces

NARROWEST = 0.001  # bandwidth of the smooth error
MODES_PER_SIGMA = 2.75  # exp(-(pi * 2.75)^2 / 2) is below 1e-16

NODES = 14  # Chebyshev nodes per cell of one bandwidth: relative error below 1e-12
REACH = 9.0  # bandwidths after which exp(-x^2 / 2) is below 3e-18
ORDERS = 16  # Taylor orders per cell: error below 1e-15 of the total weight


def gauss_sums(points: Array, weights: Array, h: float) -> Array:
    """Sums over j of w_j exp(-(x_i - x_j)^2 / (2 h^2)), for every point x_i and row of weights (r, n).

    Points lie in [0, 1]. Each cell of width h gathers its points on Chebyshev nodes, cells talk to each
    other through small matrices, and the sums are interpolated back.

    >>> x = np.array([0.2, 0.21, 0.9])
    >>> np.round(gauss_sums(x, np.ones((1, 3)), 0.01), 4)  # neighbours one bandwidth apart: 1 + exp(-1/2)
    array([[1.6065, 1.6065, 1.    ]])
    """
    cells = int(np.ceil(1 / h))
    cell = np.minimum((points * cells).astype(np.int64), cells - 1)
    nodes = chebpts1(NODES)  # in [-1, 1]
    local = 2 * (points * cells - cell) - 1
    basis = chebvander(local, NODES - 1) @ _node_weights(nodes)  # (n, nodes): Lagrange polynomials at the points
    gathered = np.stack(
        [np.stack([np.bincount(cell, row * column, minlength=cells) for column in basis.T], axis=1) for row in weights]
    )  # (r, cells, nodes)
    spread = np.zeros_like(gathered)
    place = nodes / 2
    for step in range(-min(cells - 1, int(REACH * h * cells) + 1), min(cells, int(REACH * h * cells) + 2)):
        distance = (step + place[:, None] - place[None, :]) / (cells * h)
        kernel = np.exp(-0.5 * distance**2)  # (target node, source node)
        to, source = slice(max(step, 0), cells + min(step, 0)), slice(max(-step, 0), cells - max(step, 0))
        spread[:, to] += gathered[:, source] @ kernel.T
    return np.asarray(np.einsum("ia,ria->ri", basis, spread[:, cell]))


def _node_weights(nodes: Array) -> Array:
    """(orders, nodes) so that T(x) @ this gives the Lagrange polynomials of the nodes at x."""
    weights = 2 * chebvander(nodes, NODES - 1).T / NODES
    weights[0] /= 2
    return np.asarray(weights)


def cosine_sums(points: Array, weights: Array, modes: int) -> Array:
    """sum over i of w_i cos(pi m x_i) for m = 0..modes - 1, points in [0, 1], by FFT of cell moments."""
    cells = 2 * modes
    moments = np.zeros((ORDERS, cells))
    for part in pieces(len(points), BLOCK):
        place = points[part] * cells
        cell = np.minimum(place.astype(np.int64), cells - 1)
        offset, moment = 2 * (place - cell) - 1, weights[part].astype(np.float64)  # the offset is in [-1, 1]
        for order in range(ORDERS):
            moments[order] += np.bincount(cell, moment, minlength=cells)
            moment *= offset
            moment /= order + 1
    m = np.arange(modes)
    phase = 1j * np.pi * m / (2 * cells)
    total = np.zeros(modes, dtype=np.complex128)
    factor = np.ones(modes, dtype=np.complex128)
    for sums in moments:
        total += factor * np.conj(np.fft.rfft(sums, 2 * cells)[:modes])
        factor = factor * phase
    return np.real(total * np.exp(phase))


def heat(coefficients: Array, sigma: float, points: int) -> Array:
    """A signed mass on [0, 1] after smoothing with a Gaussian reflected at both ends, at `points` midpoints.

    `coefficients` are its cosine sums. Reflection at both ends, with all images, is a plain damping of them.
    """
    m = np.arange(len(coefficients))
    damped = coefficients * np.exp(-0.5 * (np.pi * m * sigma) ** 2)
    spectrum = np.zeros(points + 1, dtype=np.complex128)
    spectrum[: len(m)] = damped * np.exp(1j * np.pi * m / (2 * points))
    return np.asarray(np.fft.irfft(spectrum, 2 * points)[:points] * 2 * points)


def smooth_error(scores: Array, residual: Array) -> tuple[float, float]:
    """The integral of the smoothed residual at the bandwidth that it equals (0.001 at least), and that bandwidth."""
    coarse, least = cosine_sums(scores, residual, 256), MODES_PER_SIGMA / 256
    if _error(coarse, least) > least:
        return _fixed_point(coarse, least)
    return _fixed_point(cosine_sums(scores, residual, int(MODES_PER_SIGMA / NARROWEST)), NARROWEST)


def _error(coefficients: Array, sigma: float) -> float:
    points = max(4096, 1 << int(np.ceil(np.log2(20 / sigma))))
    modes = min(len(coefficients), int(np.ceil(MODES_PER_SIGMA / sigma)) + 1)
    return float(np.abs(heat(coefficients[:modes], sigma, points)).mean())


def _fixed_point(coefficients: Array, low: float) -> tuple[float, float]:
    """The error and the sigma at which both are equal, by halving: the error never rises with sigma."""
    high = 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if _error(coefficients, middle) <= middle:
            high = middle
        else:
            low = middle
    return _error(coefficients, high), high
