"""Evidence against calibration that is valid after every row: an e-process, the average of products of bets.

A bet on "too high" multiplies its wealth by 1 + bet (score - tolerance - outcome), one on "too low" by
1 + bet (outcome - score - tolerance). While every score is right up to the tolerance, both factors have a mean of at
most one, so the average wealth ever reaches 1/alpha with probability at most alpha (Ville's inequality). There are bets
on all rows, and on the rows of each of ten bins of scores.

Mode "change" looks for a change after a calibrated period: before each row, wealth below one is reset to one. It
reaches 1/alpha by chance after 1/alpha rows or more on average (an e-detector: Shin, Ramdas, Rinaldo 2024).
"""

from typing import Literal

import numpy as np

from calibrant.core.arrays import Array

Mode = Literal["anytime", "change"]

BETS = np.array([0.05, 0.1, 0.2, 0.4, 0.8])
BINS = 10
SHAPE = (1 + BINS, 2, len(BETS))  # all rows and each bin; too high and too low; bets
SHARE = np.array([0.5, *[0.5 / BINS] * BINS])  # weights of all rows and of each bin in the average
CHUNK = 256  # rows whose product neither overflows nor vanishes: factors lie between 0.2 and 1.8
PIECE = 1 << 14  # rows processed at a time, so that they stay in the processor's cache
MOST_LOG = 500.0  # larger wealth is clipped in the path; the logarithms keep it


def start() -> Array:
    """Logarithms of the wealth of every bet before the first row."""
    return np.zeros(SHAPE)


def log_evidence(logs: Array) -> float:
    """The logarithm of the average wealth."""
    top = float(logs.max())
    return top + float(np.log(SHARE @ np.exp(logs - top).mean(axis=(1, 2))))


def follow(logs: Array, score: Array, outcome: Array, tolerance: float, mode: Mode) -> tuple[Array, Array]:
    """The average wealth after each row, (n,), and the logarithms after the last.

    >>> path, _ = follow(start(), np.array([0.9, 0.8]), np.array([1.0, 0.0]), 0.0, "anytime")
    >>> path.round(5)
    array([1.     , 0.99318])
    """
    paths = [np.empty(0)]
    for first in range(0, len(score), PIECE):
        rows = slice(first, first + PIECE)
        path, logs = _follow_piece(logs, score[rows], outcome[rows], tolerance, mode)
        paths.append(path)
    return np.concatenate(paths), logs


def place_of_most(logs: Array) -> tuple[int, int]:
    """The bet with the largest part of the wealth: 0 for all rows or 1 + bin, and 0 for too high, 1 for too low."""
    parts = SHARE[:, None] * np.exp(logs - logs.max()).mean(axis=2)
    place, side = np.unravel_index(int(parts.argmax()), parts.shape)
    return int(place), int(side)


def _follow_piece(logs: Array, score: Array, outcome: Array, tolerance: float, mode: Mode) -> tuple[Array, Array]:
    factors, after = _factors(score, outcome, tolerance), logs.copy()
    of_all, after[0] = _run(logs[0], factors, mode)
    bin_of = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    order = np.argsort(bin_of, kind="stable")
    ends = np.searchsorted(bin_of[order], np.arange(BINS + 1))
    steps, before = np.zeros(len(score)), np.exp(np.minimum(logs[1:], MOST_LOG)).mean(axis=(1, 2))
    for b in np.flatnonzero(np.diff(ends)):
        rows = order[ends[b] : ends[b + 1]]
        path, after[1 + b] = _run(logs[1 + b], factors[rows], mode)
        steps[rows] = np.diff(path, prepend=before[b])
    return SHARE[0] * of_all + SHARE[1] * (before.sum() + np.cumsum(steps)), after


def _factors(score: Array, outcome: Array, tolerance: float) -> Array:
    """The factors by which each row multiplies the wealth of the bets, (n, 10): too high, then too low."""
    bets, off = BETS / (1 + tolerance), score - outcome
    m = len(BETS)
    factors = np.empty((len(score), 2 * m))
    np.multiply.outer(off - tolerance, bets, out=factors[:, :m])
    np.multiply.outer(-off - tolerance, bets, out=factors[:, m:])
    factors += 1.0
    return factors


def _run(logs: Array, factors: Array, mode: Mode) -> tuple[Array, Array]:
    """The mean wealth of these bets after each row, and their logarithms after the last."""
    n, m = factors.shape
    size = min(n, CHUNK)
    chunks = -(-n // size)
    padded = factors if n == chunks * size else np.concatenate([factors, np.ones((chunks * size - n, m))])
    product = np.cumprod(padded.reshape(chunks, size, m), axis=1, dtype=np.float64)
    begin = logs.reshape(m)
    if mode == "change":
        path, end = _restart(begin, product, (n - 1) % size)
    else:
        ends = begin + np.cumsum(np.log(product[:, -1]), axis=0)
        begins = np.concatenate([begin[None], ends[:-1]])
        path, end = (product @ _wealth(begins)[:, :, None])[:, :, 0] / m, ends[-1]
    return path.reshape(-1)[:n], end.reshape(logs.shape)


def _restart(begin: Array, product: Array, last: int) -> tuple[Array, Array]:
    """Paths with wealth max(M, 1) before each row: M = product * max(start, 1 / lowest product before the row)."""
    chunks, size, m = product.shape
    lowest = np.full((chunks, size, m), np.inf)
    np.minimum.accumulate(product[:, :-1], axis=1, out=lowest[:, 1:])
    at = np.full(chunks, size - 1)
    at[-1] = last  # rows behind it only fill the chunk
    each = np.arange(chunks)
    log_product, log_lowest = np.log(product[each, at]), np.log(lowest[each, at])
    starts = np.empty((chunks, m))
    for chunk in range(chunks):
        starts[chunk] = np.maximum(begin, 0.0)
        begin = log_product[chunk] + np.maximum(starts[chunk], -log_lowest[chunk])
    wealth = product * np.maximum(_wealth(starts)[:, None], 1 / lowest)
    return wealth.mean(axis=2), begin


def _wealth(logs: Array) -> Array:
    return np.exp(np.minimum(logs, MOST_LOG))
