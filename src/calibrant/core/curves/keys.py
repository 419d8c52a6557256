"""Keys that order rows by their logits where scores, which are floats, no longer tell them apart.

A key is the score itself; close to 1 it is the log-odds, and next to 0 a positive number that grows with them. So keys
order rows as their scores do, never end at 1, and are never negative.
"""

from collections.abc import Callable

import numpy as np

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.parallel import pieces

NEAR_ONE = 1 - 2.0**-16  # above it, log-odds of the score itself would have fewer than eleven digits
FLOOR = 1e-12  # probabilities of 0 and 1 have no log-odds: they count as this far from it
NEAR_ZERO = 1e-290  # below it, floats have fewer digits, and then none
DECIMALS = 10  # of log-odds among several classes: the order of the classes must not part equal rows
ELEMENTS = 1 << 16  # logits looked at together


def keys_of(scores: Array, log_odds: Callable[[Ints], Array]) -> Array:
    """Keys of scores that come from logits; `log_odds` gives those of some rows. No key differs: the scores."""
    extreme = np.flatnonzero((scores > NEAR_ONE) | (scores < NEAR_ZERO))
    if not len(extreme):
        return scores
    keys, odds = scores.copy(), log_odds(extreme)
    keys[extreme] = np.where(odds > 0, odds, NEAR_ZERO / np.maximum(-odds, 1.0))
    return keys


def scores_of(keys: Array) -> Array:
    """The scores that keys stand for; the keys themselves where they are scores."""
    extreme = np.flatnonzero((keys > 1) | (keys < NEAR_ZERO))
    if not len(extreme):
        return keys
    scores = keys.copy()
    scores[extreme] = _expit(log_odds_of(keys[extreme]))
    return scores


def log_odds_of(keys: Array) -> Array:
    """The log-odds that keys stand for.

    >>> log_odds_of(np.array([0.5, 40.0, NEAR_ZERO / 800])).tolist()
    [0.0, 40.0, -800.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(keys) - np.log1p(-keys)
        return np.where(keys > 1, keys, np.where(keys < NEAR_ZERO, -NEAR_ZERO / keys, odds))


def floored_log_odds(scores: Array) -> Array:
    """Log-odds of scores, which are floored at 1e-12 and 1 - 1e-12."""
    s = np.clip(scores, FLOOR, 1 - FLOOR)
    odds = np.log(s)
    np.negative(s, out=s)
    odds -= np.log1p(s, out=s)
    return odds


def log_odds_of_classes(logits: Floats, classes: Ints, rows: Ints) -> Array:
    """Log-odds of one class against all others in some rows: its logit minus the logsumexp of theirs."""
    k = logits.shape[1]
    odds = np.empty(len(rows))
    for part in pieces(len(rows), max(1, ELEMENTS // k)):
        block, at = logits[rows[part]].astype(np.float64), classes[rows[part], None]
        own = np.take_along_axis(block, at, axis=1)[:, 0]
        np.put_along_axis(block, at, -np.inf, axis=1)
        largest = block.max(axis=1)
        odds[part] = own - largest
        if k > 2:
            odds[part] -= np.log(np.exp(block - largest[:, None]).sum(axis=1))
    return odds if k == 2 else np.round(odds, DECIMALS)


def _expit(x: Array) -> Array:
    """The logistic function, without scipy: a small file need not wait for it."""
    e = np.exp(-np.abs(x))
    return np.where(x > 0, 1 / (1 + e), e / (1 + e))
