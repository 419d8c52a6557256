"""Base rates of unlabelled rows from calibrated probabilities, and whether a change of base rates explains the scores.

If only the class frequencies change from pi to pi', the probabilities of a row are P(j | x) pi'_j / pi_j, normalised.
EM finds the pi' of largest likelihood (Saerens, Latinne, Decaestecker, Neural Computation 2002).
"""

import numpy as np

from calibrant.core.arrays import Array, Ints

TOLERANCE = 1e-10  # of the estimate: the largest change in a step
MOST_STEPS = 100_000


def estimate_rates(
    probs: Array, old: Array, weights: Array, *, start: Array | None = None, tolerance: float = TOLERANCE
) -> Array:
    """The base rates under which rows of these weights are likeliest, by EM from `old`; weights sum to one."""
    rates = old if start is None else start
    ratio = probs / old
    for _ in range(MOST_STEPS):
        new = rates * (ratio.T @ (weights / (ratio @ rates)))
        new /= new.sum()
        change = np.abs(new - rates).max()
        rates = new
        if change < tolerance:
            break
    return rates


class ScoreOrder:
    """Labelled and unlabelled probabilities of each class in one order, for distances of distribution functions."""

    def __init__(self, labelled: Array, unlabelled: Array) -> None:
        both = np.concatenate([labelled, unlabelled])
        columns = range(1, 2) if both.shape[1] == 2 else range(both.shape[1])  # of two classes one says it all
        self.orders: list[tuple[Ints, Ints]] = []
        for c in columns:
            order = np.argsort(both[:, c], kind="stable")
            self.orders.append((order, np.append(np.flatnonzero(np.diff(both[order, c]) > 0), len(both) - 1)))

    def gap(self, labelled: Array, unlabelled: Array) -> float:
        """The largest distance of the distribution functions of weighted rows, over all classes."""
        weights = np.concatenate([labelled, -unlabelled])
        return max(float(np.abs(np.cumsum(weights[order])[ends]).max()) for order, ends in self.orders)


def mixture(labels: Ints, weights: Array, rates: Array) -> Array:
    """Weights of labelled rows under which their classes have these rates; they sum to one."""
    total = np.bincount(labels, weights, len(rates))
    return np.asarray(weights * np.divide(rates, total, out=np.zeros(len(rates)), where=total > 0)[labels])
