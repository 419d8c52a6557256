"""The class that is predicted, its probability, and whether it is the true one."""

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
