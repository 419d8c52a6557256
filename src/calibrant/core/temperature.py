"""The temperature that minimises the negative log-likelihood, exactly, with a proof or a diagnosis."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.core.arrays import pieces, run_pieces
from calibrant.core.predictions import CHUNK_ELEMENTS, Predictions

Diagnosis = Literal["converged", "separable", "anti-informative", "constant scores"]

NO_OPTIMUM = {"separable": 0.01, "anti-informative": 100.0, "constant scores": 1.0}  # T when there is none
ROUGH_STEP, SMALL_STEP = 1e-3, 3e-6  # in ln T; the error after a Newton step is about its square
SAMPLE, SAMPLE_STEP = 1000, 1e-2  # rows, and ln T
STRIDE = 2.0  # the longest step in ln T: far out, curvature says little
STEPS = 100


@dataclass(frozen=True)
class Temperature:
    """T, how sure it is, and why to believe it.

    `gradient` is d NLL / d ln T at T, `stderr` the standard error of T from the curvature. Diagnoses other than
    "converged" name why no finite optimum exists; T is then the end of 0.01 .. 100 that the likelihood points to.
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
    diagnosis = _diagnose(p)
    if diagnosis != "converged":
        return Temperature(NO_OPTIMUM[diagnosis], np.inf, float("nan"), diagnosis)
    near = 0.0
    if p.n > 4 * SAMPLE:  # cheap steps first, on a few rows and in float32: the end does not depend on them
        few = p.take(np.linspace(0, p.n - 1, SAMPLE).astype(np.int64))
        near = _newton(few, near, np.float32, SAMPLE_STEP)[0] if _diagnose(few) == "converged" else near
    near = _newton(p, near, np.float32, ROUGH_STEP)[0]
    s, gradient, curvature = _newton(p, near, np.float64, SMALL_STEP)
    T = float(np.exp(-s))
    return Temperature(T, float(T / np.sqrt(p.n * curvature)), -gradient, diagnosis)


def descend(p: Predictions, *, steps: int, rate: float) -> tuple[float, float]:
    """T after plain gradient descent from 1, and the size of d NLL / d T there: a recipe of papers that stops early."""
    T = 1.0
    for _ in range(steps):
        T = max(T + rate * _derivatives(p, -float(np.log(T)), np.float64)[0] / T, 1e-2)
    return T, abs(_derivatives(p, -float(np.log(T)), np.float64)[0] / T)


def _newton(p: Predictions, s: float, precision: type[np.floating[Any]], enough: float) -> tuple[float, float, float]:
    """Newton's steps in s = ln(1 / T) inside a bracket, until one is small; s and both derivatives there."""
    low, high, moved = -np.inf, np.inf, np.inf  # the gradient is negative at low and positive at high
    for _ in range(STEPS):
        gradient, curvature = _derivatives(p, s, precision)
        if moved < enough:
            break
        low, high = (s, high) if gradient < 0 else (low, s)
        step = -gradient / curvature if curvature > 0 else -np.sign(gradient)
        following = s + max(-STRIDE, min(STRIDE, step))
        if low < high and not low <= following <= high:
            following = (low + high) / 2
        moved, s = abs(following - s), following
    return s, gradient, curvature


def _diagnose(p: Predictions) -> Diagnosis:
    """Whether a finite optimum exists.

    The NLL is convex in 1 / T. It falls for ever if every label has the largest logit of its row; it rises from
    1 / T = 0 on if labels have, on average, no more than the mean logit of their row. In all other cases there is
    one optimum.
    """
    top, bottom, mean, true = (np.empty(p.n) for _ in range(4))

    def work(rows: slice) -> None:
        z = p.logits[rows].astype(np.float64)
        top[rows], bottom[rows], mean[rows] = z.max(axis=1), z.min(axis=1), z.mean(axis=1)
        true[rows] = z[np.arange(len(z)), p.labels[rows]]

    run_pieces(work, pieces(p.n, max(1, CHUNK_ELEMENTS // p.k)), p.logits.size)
    if (top == bottom).all():
        return "constant scores"
    if (true >= top).all():
        return "separable"
    return "anti-informative" if (mean - true).sum() >= 0 else "converged"


def _derivatives(p: Predictions, s: float, precision: type[np.floating[Any]]) -> tuple[float, float]:
    """First and second derivative of the mean NLL with respect to s = ln(1 / T)."""
    values, beta = p.logits, float(np.exp(s))
    parts = pieces(p.n, max(1, CHUNK_ELEMENTS // p.k))
    sums = np.empty((len(parts), 2))

    def work(rows: slice) -> None:
        z = values[rows].astype(precision)
        z -= z.max(axis=1, keepdims=True)
        z *= precision(beta)
        e = np.exp(z)
        total = e.sum(axis=1)
        e *= z
        mean = e.sum(axis=1) / total
        square = np.einsum("ik,ik->i", e, z) / total
        true = z[np.arange(len(z)), p.labels[rows]]
        sums[rows.start // parts[0].stop] = (
            (mean - true).sum(dtype=np.float64),
            (square - mean**2).sum(dtype=np.float64),
        )

    run_pieces(work, parts, values.size)
    first, variance = sums.sum(axis=0) / p.n
    return float(first), float(first + variance)
