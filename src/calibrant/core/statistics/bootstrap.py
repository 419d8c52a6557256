"""Seeded bootstrap: draws of a measure, the interval and the paired test made from them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Integers, Ints
from calibrant.core.errors import InputError

BATCH_ELEMENTS = 1 << 22  # counts held at a time
KEPT_ELEMENTS = 1 << 25  # counts kept for the next measure, two bytes each

OnDone = Callable[[int], None]  # called with the number of resamples just done


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


def resample_counts(n: int, resamples: int, seed: int, clusters: Integers | None = None) -> Iterator[Ints]:
    """Counts of each of n rows in each resample, in batches (b, n); the same for the same seed.

    Rows of one cluster (0, 1, ... of each row) come together.
    """
    rng = np.random.default_rng(seed)
    units = n if clusters is None else int(clusters.max()) + 1
    batch = max(1, BATCH_ELEMENTS // n)
    known = _draw_all_counts(units, resamples, seed) if units * resamples <= KEPT_ELEMENTS else None
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        counts = _draw_counts(rng, units, size) if known is None else known[start : start + size].astype(np.int64)
        yield counts if clusters is None else counts[:, clusters]


@lru_cache(maxsize=1)
def _draw_all_counts(units: int, resamples: int, seed: int) -> npt.NDArray[np.uint16]:
    """All resamples of few rows, cached: one measure after the other asks for the same ones."""
    rng, counts = np.random.default_rng(seed), np.empty((resamples, units), dtype=np.uint16)
    for i in range(resamples):
        counts[i] = _draw_counts(rng, units, 1)[0]
    return counts


def _draw_counts(rng: np.random.Generator, units: int, size: int) -> Ints:
    return np.stack([np.bincount(rng.integers(units, size=units), minlength=units) for _ in range(size)])


def draw(
    resampled: Callable[[Ints], Array],
    n: int,
    resamples: int,
    seed: int,
    progress: OnDone | None = None,
    clusters: Integers | None = None,
) -> Array:
    """Compute the measure on every resample."""
    draws = []
    for counts in resample_counts(n, resamples, seed, clusters):
        draws.append(resampled(counts))
        if progress:
            progress(len(counts))
    return np.concatenate(draws)


def basic_interval(
    value: float, draws: Array, confidence: float, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> Interval:
    """The basic bootstrap interval, which corrects the bias the resamples show, widened to hold the value.

    Resampling adds noise, and noise raises an ECE; the percentile interval would add that bias a second time. The
    basic interval subtracts it. Draws that are undefined (an AUROC without errors) are left out.

    >>> basic_interval(0.5, np.array([0.4, 0.5, 0.6, 0.7]), 0.5)
    Interval(low=0.375, high=0.525)
    """
    tail = (1 - confidence) / 2
    low = one_sided(value, draws, 1 - tail, bounds, "low")
    high = one_sided(value, draws, 1 - tail, bounds, "high")
    return Interval(min(low, value), max(high, value)) if np.isfinite(value) else Interval(np.nan, np.nan)


def one_sided(value: float, draws: Array, confidence: float, bounds: tuple[float, float], side: str) -> float:
    """The bound the true value is above (`low`) or below (`high`) with this confidence."""
    finite = draws[np.isfinite(draws)]
    if not len(finite):
        return float("nan")
    quantile = np.quantile(finite, confidence if side == "low" else 1 - confidence)
    return float(np.clip(2 * value - quantile, *bounds))


def p_value(difference: float, draws: Array, upper: Array | None = None) -> float:
    """The two-sided p-value from the same reflected draws as the interval: small when the interval excludes 0.

    Where the two ends have draws of their own, `draws` are those of the lower end.
    """
    low, high = (difference - (d[np.isfinite(d)] - difference) for d in (draws, draws if upper is None else upper))
    below, above = (1 + (low <= 0).sum()) / (len(low) + 1), (1 + (high >= 0).sum()) / (len(high) + 1)
    return float(min(1.0, 2 * min(below, above)))


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InputError(
            "confidence", expected="a share strictly between 0 and 1", got=f"{confidence:g}", fix="use 0.95"
        )
