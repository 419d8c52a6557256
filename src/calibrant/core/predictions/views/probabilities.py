"""Probabilities of predictions: of all classes, in blocks, of the true class, and sums over a row."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.arrays import Array, Floats, lock
from calibrant.core.curves import softmax
from calibrant.core.curves.native import SoftmaxStats
from calibrant.core.curves.softmax import entropy_of, softmax_of
from calibrant.core.parallel import pieces, run_pieces
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.predictions.logit_range import mask_options

if TYPE_CHECKING:
    from calibrant.core.predictions.predictions import Predictions


def softmax_stats(p: "Predictions") -> SoftmaxStats:
    """What one pass over the scores finds in every row: the largest, its class, the sum of exp, the confidence."""
    predicted = np.ones(p.n, dtype=np.int64) if p.task == "confidence" else p.row_data.predicted  # class 1 is: right
    if p.one_score and predicted is None:  # without building both columns
        s = p.given_scores
        positive = s > 1 - s
        confidence = lock(np.where(positive, s, 1 - s))
        return SoftmaxStats(confidence, lock(positive.astype(np.int64)), confidence, np.broadcast_to(1.0, s.shape))
    return softmax.softmax_stats(p.values, p.score_type == "logits", predicted, p.chunk_rows, labels=p.given_labels)


def largest_logit(p: "Predictions") -> Floats:
    """The largest logit of every row, (n,)."""
    if p.score_type == "logits" and not p.is_long:
        return p.softmax_stats.largest
    return np.asarray(p.logits.max(axis=1))


def logits(p: "Predictions") -> Floats:
    """The logits as given, or the logarithm of the probabilities as given (floored at 1e-12)."""
    return p.values if p.score_type == "logits" else p.log_values


def log_values(p: "Predictions") -> Array:
    """Logarithms of probabilities as given, floored at 1e-12."""
    logs = np.log(np.maximum(p.values, PROBABILITY_FLOOR), dtype=np.float64)
    return logs if p.row_data.option_mask is None else mask_options(logs, p.row_data.option_mask)


def log_probs(p: "Predictions") -> Array:
    """Log-probabilities (n, k); computed anew at each call."""
    if p.score_type == "probs":
        return p.log_values
    return p.values - p.softmax_stats.largest[:, None] - np.log(p.softmax_stats.total)[:, None]


def probs(p: "Predictions") -> Array:
    """Probabilities (n, k) in float64; kept when small, computed anew when large."""
    if p.score_type == "probs":
        return p.values.astype(np.float64, copy=False)
    result, stats = np.empty((p.n, p.k)), p.softmax_stats  # found before several threads read it

    def work(rows: slice) -> None:
        result[rows] = softmax_of(p.values[rows], stats.largest[rows], stats.total[rows])

    run_pieces(work, pieces(p.n, p.chunk_rows), result.size)
    return result


def block(p: "Predictions", rows: slice, classes: slice = slice(None)) -> Array:
    """Probabilities of some rows and classes; of large predictions without those of all others."""
    if p.is_small:
        return p.probs[rows, classes]
    values = p.values[rows, classes]
    if p.score_type == "probs":
        return values.astype(np.float64, copy=False)
    return softmax_of(values, p.softmax_stats.largest[rows], p.softmax_stats.total[rows])


def blocks(p: "Predictions") -> Iterator[tuple[slice, Array]]:
    """Probabilities in chunks of rows, so that 50,000 x 1000 needs no second copy."""
    for rows in pieces(p.n, p.chunk_rows):
        yield rows, block(p, rows)


def true_prob(p: "Predictions") -> Array:
    """Probability given to the true class, (n,)."""
    return _at_label(p).astype(np.float64) if p.score_type == "probs" else p.map_chunks(_true_softmax)


def true_log_prob(p: "Predictions") -> Array:
    """Log-probability of the true class, (n,); without a floor when it comes from logits."""
    if p.score_type == "logits":
        return p.map_chunks(_true_log_softmax)
    logs = np.maximum(_at_label(p), PROBABILITY_FLOOR)
    return np.asarray(np.log(logs, out=logs))


def _true_softmax(p: "Predictions") -> Array:
    stats = p.softmax_stats
    if stats.true_prob is not None:
        return stats.true_prob
    with np.errstate(over="ignore"):
        z = np.subtract(_at_label(p), stats.largest, dtype=np.float64)
    np.exp(z, out=z)
    z /= stats.total
    return np.asarray(z)


def _true_log_softmax(p: "Predictions") -> Array:
    stats = p.softmax_stats
    if stats.true_log_prob is not None:
        return stats.true_log_prob
    with np.errstate(over="ignore"):
        return np.asarray(_at_label(p) - stats.largest - np.log(stats.total))


def _at_label(p: "Predictions") -> Floats:
    """The score of the true class."""
    if p.one_score:  # the same numbers as in `values`, without building it
        return np.where(p.known_labels, p.given_scores, 1 - p.given_scores)
    if p.values.flags.c_contiguous:  # twice as fast
        return p.values.reshape(-1).take(np.arange(p.n) * p.k + p.labels)
    return p.values[np.arange(p.n), p.labels]


def squared_probs_sum(p: "Predictions") -> Array:
    """The sum of the squared probabilities of every row, (n,)."""
    if p.score_type == "logits" and p.softmax_stats.square is not None:
        return p.softmax_stats.square
    return np.concatenate([np.einsum("ik,ik->i", probs, probs) for _, probs in blocks(p)])


def entropy(p: "Predictions") -> Array:
    """Entropy of the distribution of every row in nats, (n,)."""
    return np.asarray(np.maximum(np.concatenate([entropy_of(probs) for _, probs in blocks(p)]), 0.0))
