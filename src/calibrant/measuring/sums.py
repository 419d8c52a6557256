"""What an accumulator adds up: counts, scores, hits and squared residuals per bin."""

from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures import ClassMeasure


def top_sums(p: Predictions, bins: int, closed: Any) -> Array:
    """Count, score, hit and squared residual per bin, (4, bins)."""
    b = p.top_label.bins(bins, closed=closed)
    edges = np.concatenate([[0], np.cumsum(b.count)]).astype(np.int64)
    square = np.concatenate([[0.0], np.cumsum((p.top_label.scores - p.top_label.hits) ** 2)])
    return np.stack([b.count, b.score_sum, b.hit_sum, np.diff(square[edges])])


def class_sums(p: Predictions, m: ClassMeasure) -> Array:
    """The same for every class, (4, k, bins); squared residuals are sum of p^2 - 2 p y + y."""
    parts = []
    for curves in p.class_curves():
        b = m.make_bins(curves)
        square = np.empty_like(b.count)
        for row, scores in enumerate(curves.scores):
            cuts = np.concatenate([[0], np.cumsum(b.count[row])]).astype(np.int64)
            hit_cuts = np.concatenate([[0], np.cumsum(b.hit_sum[row])]).astype(np.int64)
            positives = np.concatenate([[0.0], np.cumsum(1 - 2 * curves.positives[row])])
            square[row] = np.diff(np.concatenate([[0.0], np.cumsum(scores**2)])[cuts]) + np.diff(positives[hit_cuts])
        parts.append(np.stack([b.count, b.score_sum, b.hit_sum, square]))
    return np.concatenate(parts, axis=1)
