"""Newton's method for softmax(W z + b) with few classes, where the whole matrix of second derivatives fits."""

import numpy as np

from calibrant.calibrators._objective import Objective
from calibrant.core.arrays import Array, Floats
from calibrant.core.parallel import pieces

LARGEST = 1000  # parameters k (k + 1) up to which Newton is used
STEPS = 100
CHUNK = 1000  # rows


def newton(
    objective: Objective,
    z: Floats,
    weight: Array,
    bias: Array,
    ridge: tuple[float, float, float],
    enough: float,
    rows_weigh: Array | None = None,
) -> tuple[Array, Array, int]:
    """Damped Newton steps until the largest gradient entry is small; weight, bias and the number of steps.

    `ridge` are the strengths on the diagonal, off it, and on the bias.
    """
    k = len(bias)
    theta = np.concatenate([weight, bias[:, None]], axis=1)  # (k, k + 1)
    strengths = np.full((k, k + 1), ridge[1])
    np.fill_diagonal(strengths, ridge[0])
    strengths[:, k] = ridge[2]
    for step in range(STEPS):
        value, gw, gb = objective(theta[:, :k], theta[:, k])
        gradient = np.concatenate([gw, gb[:, None]], axis=1)
        if np.abs(gradient).max() < enough:
            return theta[:, :k], theta[:, k], step
        curvature = _curvature(z, theta, rows_weigh) + np.diag(2 * strengths.ravel())
        floor = 1e-12 * np.trace(curvature) / len(curvature) + 1e-300  # a constant added to all rows changes nothing
        system = curvature + floor * np.eye(len(curvature))
        try:
            direction = -np.linalg.solve(system, gradient.ravel()).reshape(theta.shape)
        except np.linalg.LinAlgError:
            return theta[:, :k], theta[:, k], step
        slope, length = float((gradient * direction).sum()), 1.0
        while length > 1e-10 and objective(*_split(theta + length * direction))[0] > value + 1e-4 * length * slope:
            length /= 2
        if length <= 1e-10:
            return theta[:, :k], theta[:, k], step
        theta = theta + length * direction
    return theta[:, :k], theta[:, k], STEPS


def _split(theta: Array) -> tuple[Array, Array]:
    return theta[:, :-1], theta[:, -1]


def _curvature(z: Floats, theta: Array, rows_weigh: Array | None) -> Array:
    """Second derivatives of the mean NLL, (k (k + 1), k (k + 1))."""
    n, k = z.shape
    total = np.zeros((k * (k + 1), k * (k + 1)))
    for rows in pieces(n, CHUNK):
        x = np.concatenate([z[rows].astype(np.float64), np.ones((rows.stop - rows.start, 1))], axis=1)
        u = x @ theta.T
        q = np.exp(u - u.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        a = (q[:, :, None] * x[:, None, :]).reshape(len(x), -1)  # (b, k (k + 1))
        w = None if rows_weigh is None else rows_weigh[rows, None]
        total -= (a if w is None else a * w).T @ a
        heavy = q if w is None else q * w
        for c in range(k):
            block = slice(c * (k + 1), (c + 1) * (k + 1))
            total[block, block] += (x * heavy[:, c : c + 1]).T @ x
    return np.asarray(total / (n if rows_weigh is None else rows_weigh.sum()))
