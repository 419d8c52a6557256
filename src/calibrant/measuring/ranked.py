"""Rankings from a fine histogram of scores: the value, and how far the rows inside a bin can move it."""

from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.weighted import WeightedCurve
from calibrant.measures import CurveMeasure
from calibrant.measures.roc_auc import ROCAUC
from calibrant.measuring.sums import fine_scores

DRAWS = 200

Ranking = CurveMeasure | ROCAUC


@dataclass(frozen=True)
class Ranked:
    """A measure of ranking, and what it would be if inside every bin the best or the worst order stood."""

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        return max(self.high - self.value, self.value - self.low)


def ranked(m: Ranking, fine: Array) -> Ranked:
    """From weights of hits and misses per bin, (4, FINE).

    >>> from calibrant.measures import make
    >>> fine = np.zeros((4, 4096))
    >>> fine[0, [10, 3000]], fine[1, [10, 50]] = 1, 1  # hits in bins 10 and 3000, misses in 10 and 50
    >>> ranked(make("auroc_correct"), fine)
    Ranked(value=0.625, low=0.5, high=0.75)
    """
    hits, misses = fine[0], fine[1]
    ends = [m.on(_curve(hits, misses, shift)) for shift in (-1, 1)]
    return Ranked(m.on(_curve(hits, misses, 0)), min(ends), max(ends))


def drawn(m: Ranking, fine: Array, rng: np.random.Generator, *, counts: bool) -> Array:
    """The measure on resampled rows, by drawing how many of them stand in each bin."""
    values = []
    for _ in range(DRAWS):
        if counts:
            hits, misses = (rng.poisson(part).astype(np.float64) for part in fine[:2])
        else:
            noise = rng.standard_normal(fine[:2].shape) * np.sqrt(fine[2:])
            hits, misses = np.maximum(fine[:2] + noise, 0.0)
        values.append(m.on(_curve(hits, misses, 0)))
    return np.array(values)


def _curve(hits: Array, misses: Array, shift: int) -> WeightedCurve:
    """Hits and misses as rows with weights; a shift puts the hits of a bin above (1) or below (-1) its misses."""
    n = len(hits)
    place = np.concatenate([np.arange(n) + shift / 4, np.arange(n) - shift / 4])
    rank = np.argsort(place, kind="stable")
    score = (place + 1) / (n + 1) if shift else np.tile(fine_scores(), 2)
    weights, which = np.concatenate([hits, misses])[rank], np.concatenate([np.ones(n), np.zeros(n)])[rank]
    kept = weights > 0
    return WeightedCurve(score[rank][kept], which[kept], np.arange(int(kept.sum())), weights[kept])
