"""What an accumulator adds up: counts, scores, hits and squared residuals per bin."""

from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures import ClassMeasure


def top_sums(p: Predictions, bins: int, closed: Any) -> Array:
    """Count, score, hit and squared residual per bin, (4, bins)."""
    curve = p.curve
    b, bin_of = curve.bins(bins, closed=closed), curve.bin_of(bins, closed=closed)
    square = np.bincount(bin_of, curve.weights * (curve.scores - curve.hits) ** 2, bins)
    return np.stack([b.count, b.score_sum, b.hit_sum, square])


def class_sums(p: Predictions, m: ClassMeasure) -> Array:
    """The same for every class, (4, k, bins)."""
    b, square = m.class_bins(p), np.zeros(p.k * m.bins)
    for row, cell, residual in m.entries(p):
        weight = 1.0 if p.weights is None else p.weights[row]
        square += np.bincount(cell, weight * residual**2, len(square))
    return np.stack([b.count, b.score_sum, b.hit_sum, square.reshape(p.k, m.bins)])
