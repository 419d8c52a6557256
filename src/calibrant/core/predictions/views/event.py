"""The event whose probability is judged: a positive row of binary predictions, a right prediction of all others."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array

if TYPE_CHECKING:
    from calibrant.core.predictions.predictions import Predictions


def score(p: "Predictions") -> Array:
    """P(positive) of binary predictions, with all its digits where it is small; the confidence of all others, (n,)."""
    if p.task != "binary":
        return p.confidence
    if p.one_score:
        return np.asarray(p.given_scores, dtype=np.float64)
    if p.score_type == "probs":
        return p.values[:, 1].astype(np.float64)
    return p.map_chunks(lambda q: np.exp(q.values[:, 1] - q.softmax_stats.largest) / q.softmax_stats.total)


def outcome(p: "Predictions") -> npt.NDArray[np.bool_]:
    """Whether the row is positive (binary predictions), or predicted right (all others)."""
    if p.task != "binary":
        return p.correct
    return p.known_labels.astype(bool, copy=False) if p.one_score else p.known_labels == 1
