"""The temperature that minimises the negative log-likelihood, exactly, with a proof or a diagnosis."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.arrays import pieces, run_pieces
from calibrant.core.predictions import CHUNK_ELEMENTS, Predictions

Diagnosis = Literal["converged", "separable", "anti-informative", "constant scores"]

LOWEST, HIGHEST = -np.log(1e4), np.log(1e4)  # range of ln(1 / T)
TOLERANCE = 1e-12  # on the Newton step in ln T
STEPS = 100


@dataclass(frozen=True)
class Temperature:
    """T, how sure it is, and why to believe it.

    `gradient` is d NLL / d ln T at T, `stderr` the standard error of T from the curvature. Diagnoses other than
    "converged" name why no finite optimum exists; T is then the end of the range that the likelihood points to.
    """

    T: float
    stderr: float
    gradient: float
    diagnosis: Diagnosis


def find_temperature(p: Predictions) -> Temperature:
    """Safeguarded Newton in ln T on the convex objective, from logits, with float64 sums.

    >>> z = np.array([[2.0, 0.0]] * 4)
    >>> fit = find_temperature(Predictions.from_logits(z, [0, 0, 0, 1]))  # right 3 times in 4: z / T = ln 3
    >>> round(fit.T, 6), fit.diagnosis
    (1.820478, 'converged')
    """
    spread = p.logits.max(axis=1) - p.logits.min(axis=1)
    if not spread.any():
        return Temperature(1.0, np.inf, 0.0, "constant scores")
    low, high = LOWEST, HIGHEST
    s = 0.0  # ln(1 / T)
    gradient, curvature = _derivatives(p, s)
    for _ in range(STEPS):
        low, high = (s, high) if gradient < 0 else (low, s)
        step = -gradient / curvature if curvature > 0 else np.inf
        following = s + step
        if not low < following < high:
            following = (low + high) / 2
        moved, s = abs(following - s), following
        gradient, curvature = _derivatives(p, s)
        if moved <= TOLERANCE or gradient == 0:
            break
    T = float(np.exp(-s))
    if HIGHEST - s < 1e-6:
        return Temperature(T, np.inf, -gradient, "separable")
    if s - LOWEST < 1e-6:
        return Temperature(T, np.inf, -gradient, "anti-informative")
    stderr = T / np.sqrt(p.n * curvature) if curvature > 0 else np.inf
    return Temperature(T, float(stderr), -gradient, "converged")


def _derivatives(p: Predictions, s: float) -> tuple[float, float]:
    """First and second derivative of the mean NLL with respect to s = ln(1 / T)."""
    values, beta = p.logits, float(np.exp(s))
    parts = pieces(p.n, max(1, CHUNK_ELEMENTS // p.k))
    sums = np.empty((len(parts), 2))

    def work(rows: slice) -> None:
        z = values[rows].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        z *= beta
        e = np.exp(z)
        total = e.sum(axis=1)
        e *= z
        mean = e.sum(axis=1) / total
        square = np.einsum("ik,ik->i", e, z) / total
        true = z[np.arange(len(z)), p.labels[rows]]
        sums[rows.start // parts[0].stop] = (mean - true).sum(), (square - mean**2).sum()

    run_pieces(work, parts, values.size)
    first, variance = sums.sum(axis=0) / p.n
    return float(first), float(first + variance)
