"""Ensemble temperature scaling: a mixture of tempered, plain and uniform probabilities."""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from calibrant.calibrators._base import EVERY_TASK, Calibrator
from calibrant.core.arrays import Array
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Mix
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.temperature import find_temperature

LOWEST, HIGHEST = 0.05, 5.0  # range of T when it is fitted by the Brier score
ROUNDS = 5000
TRACE = 1e-6


@dataclass(frozen=True)
class ETS(Calibrator):
    """w0 softmax(z / T) + w1 softmax(z) + w2 / k: first T, then the weights, both by the Brier score (or NLL).

    k is the number of options that a row has. Keeps predictions; with weights (1, 0, 0) it is temperature scaling.

    >>> p = Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1])
    >>> ETS().fit(p)(p).confidence.round(4).tolist()
    [0.75, 0.75, 0.75, 0.75]
    """

    loss: Literal["brier", "nll"] = "brier"

    title: ClassVar[str] = "Ensemble temperature scaling"
    words: ClassVar[str] = "an ensemble of temperatures (ets)"
    slow: ClassVar[int | None] = 1 << 20
    reference: ClassVar[str] = "Zhang, Kailkhura, Han, ICML 2020"
    tasks: ClassVar[tuple[Task, ...]] = EVERY_TASK
    keeps_argmax: ClassVar[bool] = True
    complexity: ClassVar[int] = 1
    holds_temperature: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        T = find_temperature(p).T if self.loss == "nll" else _brier_temperature(p)
        weights = _nll_weights(p, T) if self.loss == "nll" else _brier_weights(p, T)
        if weights[2] > 1 - TRACE:  # all flat: a trace of the model keeps its order, and so its predictions
            weights = np.array([TRACE, 0.0, 1 - TRACE])
        return self.build_map(p, Mix(T, weights), T=T, weights=weights.tolist())


def _brier(p: Predictions) -> float:
    square = np.empty(p.n)
    for rows, probs in p.prob_rows():
        np.einsum("ik,ik->i", probs, probs, out=square[rows])
    return p.mean(square - 2 * p.true_prob) + 1


def _brier_temperature(p: Predictions) -> float:
    """The temperature of least Brier score: best of a coarse grid, then a bounded search, as it need not be convex."""
    from scipy.optimize import minimize_scalar

    grid = np.geomspace(LOWEST, HIGHEST, 14)
    best = int(np.argmin([_brier(p.with_temperature(T)) for T in grid]))
    low, high = np.log(grid[max(best - 1, 0)]), np.log(grid[min(best + 1, len(grid) - 1)])
    optimum = minimize_scalar(lambda s: _brier(p.with_temperature(np.exp(s))), bounds=(low, high), method="bounded")
    return float(np.exp(optimum.x))


def _brier_weights(p: Predictions, T: float) -> Array:
    """Minimise a quadratic form in three weights on the simplex: exactly on each face, the best face wins."""
    gram, linear = np.zeros((3, 3)), np.zeros(3)
    hot = p.with_temperature(T)
    for (rows, first), (_, second) in zip(hot.prob_rows(), p.prob_rows(), strict=True):
        parts = np.stack([first, second, p.uniform(rows)])  # (3, b, k)
        true = parts[:, np.arange(len(first)), p.labels[rows]]  # (3, b)
        weighed = parts if p.weights is None else parts * p.weights[rows, None]
        gram += np.einsum("aik,bik->ab", weighed, parts)
        linear += true.sum(axis=1) if p.weights is None else true @ p.weights[rows]
    best, lowest, total = np.array([1.0, 0.0, 0.0]), np.inf, p.n if p.weights is None else float(p.weights.sum())
    for size in (1, 2, 3):
        for face in combinations(range(3), size):
            w = _on_face(gram, linear, list(face))
            value = float(w @ gram @ w - 2 * linear @ w)
            if (w >= 0).all() and value < lowest - 1e-9 * total:
                best, lowest = w, value
    return best


def _on_face(gram: Array, linear: Array, face: list[int]) -> Array:
    """Minimise w'Gw - 2 l'w over the weights of a face that sum to one."""
    size = len(face)
    system = np.ones((size + 1, size + 1))
    system[:size, :size], system[size, size] = gram[np.ix_(face, face)], 0.0
    solution = np.linalg.lstsq(system, np.append(linear[face], 1.0), rcond=None)[0]
    w = np.zeros(3)
    w[face] = solution[:size]
    return w


def _nll_weights(p: Predictions, T: float) -> Array:
    """The weights of least NLL, by expectation-maximisation: each round lowers it, until nothing moves."""
    flat = p.uniform()[np.arange(p.n), p.labels]
    likely = np.stack([p.with_temperature(T).true_prob, p.true_prob, flat])  # (3, n)
    share = np.full(p.n, 1 / p.n) if p.weights is None else p.weights / p.weights.sum()
    w = np.full(3, 1 / 3)
    for _ in range(ROUNDS):
        following = w * (likely / np.maximum(w @ likely, 1e-300) @ share)
        change, w = np.abs(following - w).max(), following / following.sum()
        if change < 1e-10:
            break
    return w
