"""The class that is predicted and whether it is the true one; the event that is judged and whether it occurred."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints

if TYPE_CHECKING:
    from calibrant.core.predictions.predictions import Predictions


def confidence(p: "Predictions") -> Array:
    """The probability of the predicted class, or the confidence as given, (n,)."""
    if p.one_score and p.task == "confidence":
        return np.asarray(p.given_scores, dtype=np.float64)
    return p.map_chunks(lambda q: q.softmax_stats.confidence)


def predicted(p: "Predictions") -> Ints:
    """The class of the largest score (the lowest index wins a tie), unless the rows carry another prediction."""
    return p.map_chunks(lambda q: q.softmax_stats.predicted, np.int64)


def correct(p: "Predictions") -> npt.NDArray[np.bool_]:
    """Whether the prediction is the true class, (n,)."""
    if p.one_score and p.task == "confidence":
        return p.known_labels.astype(bool, copy=False)
    if p.one_score and p.row_data.predicted is None:
        return np.asarray((p.given_scores > 1 - p.given_scores) == p.known_labels)
    return p.map_chunks(lambda q: q.predicted == q.known_labels, np.bool_)


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
