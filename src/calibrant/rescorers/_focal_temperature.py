"""The temperature that minimises the focal loss of cached logits, for any gamma; gamma 0 is cross-entropy."""

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints

LOW, HIGH = 0.01, 100.0  # where temperatures are looked for
GRID = np.linspace(np.log(LOW), np.log(HIGH), 65)  # ln T; ln 1 = 0 is in it
GRID_ROWS = 2000  # that the grid looks at: it only says where to look closer
PRECISION = 1e-11  # of ln T
FLOOR = 1e-12  # a power below 0 of 1 - p


def focal_mean(logits: npt.NDArray[np.float64], labels: Ints, gamma: float, T: float = 1.0) -> float:
    """Mean of -(1 - p)^gamma ln p over rows of softmax(logits / T).

    >>> round(focal_mean(np.zeros((1, 2)), np.array([0]), 2.0), 4)  # ln(2) / 4
    0.1733
    """
    log_p, _ = _log_p(logits, labels, T)
    return float(np.mean(-((-np.expm1(log_p)) ** gamma) * log_p))


def row_losses(logits: npt.NDArray[np.float64], labels: Ints) -> Array:
    """The loss -ln p of the true class of every row."""
    return -_log_p(logits, labels, 1.0)[0]


def best_temperature(logits: npt.NDArray[np.float64], labels: Ints, gamma: float) -> float:
    """The T in 0.01 .. 100 with the smallest focal loss.

    The focal loss may have several valleys in T, so a grid finds the deepest one before the root of its derivative is
    taken. Of everything looked at, the best is returned: never worse than T = 1.

    >>> z = np.array([[2.0, 0.0]] * 4)
    >>> round(best_temperature(z, np.array([0, 0, 0, 1]), 0.0), 6)  # right 3 times in 4: z / T = ln 3
    1.820478
    """
    z = logits - logits.max(axis=1, keepdims=True)
    few = np.unique(np.linspace(0, len(z) - 1, min(len(z), GRID_ROWS)).astype(np.int64))
    rough = np.array([focal_mean(z[few], labels[few], gamma, float(np.exp(s))) for s in GRID])
    ties = np.flatnonzero(rough <= rough.min())
    j = int(ties[np.argmin(np.abs(GRID[ties]))])  # of equals the one nearest 1: rows that are all right underflow to 0
    low, high = GRID[max(j - 1, 0)], GRID[min(j + 1, len(GRID) - 1)]
    logs = [0.0, float(GRID[j]), _valley(z, labels, gamma, float(low), float(high))]
    values = [focal_mean(z, labels, gamma, float(np.exp(s))) for s in logs]
    return min(HIGH, max(LOW, float(np.exp(logs[int(np.argmin(values))]))))


def _valley(z: Array, labels: Ints, gamma: float, low: float, high: float) -> float:
    """ln T of a minimum between two others: where the derivative turns from falling to rising."""
    from scipy.optimize import brentq, minimize_scalar

    def slope(s: float) -> float:
        return _slope(z, labels, gamma, s)

    if slope(low) < 0 < slope(high):
        return float(brentq(slope, low, high, xtol=PRECISION))
    # Flat, at an end of the range, or with more than one valley inside.
    optimum = minimize_scalar(lambda s: focal_mean(z, labels, gamma, float(np.exp(s))), bounds=(low, high))
    return float(optimum.x)


def _slope(z: Array, labels: Ints, gamma: float, s: float) -> float:
    """Derivative of the mean focal loss by s = ln T."""
    log_p, expected = _log_p(z, labels, float(np.exp(s)))
    true = z[np.arange(len(z)), labels] * np.exp(-s)
    doubt = np.maximum(-np.expm1(log_p), FLOOR)
    by_log_p = -(doubt**gamma) + gamma * doubt ** (gamma - 1) * np.exp(log_p) * log_p
    return float(np.mean(by_log_p * (expected - true)))


def _log_p(logits: Array, labels: Ints, T: float) -> tuple[Array, Array]:
    """ln p of the true class, and the mean of logits / T under the softmax; both (n,)."""
    z = logits / T
    top = z.max(axis=1)
    e = np.exp(z - top[:, None])
    total = e.sum(axis=1)
    true = z[np.arange(len(z)), labels]
    return np.minimum(true - top - np.log(total), 0.0), np.einsum("ik,ik->i", e, z) / total
