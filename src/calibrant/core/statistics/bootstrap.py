"""Seeded bootstrap: how often each row occurs in each resample."""

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Integers, Ints
from calibrant.core.errors import InputError

BATCH_ELEMENTS = 1 << 22  # counts held at a time
KEPT_ELEMENTS = 1 << 26  # counts kept for the next measure, two bytes each

OnDone = Callable[[int], None]  # called with the number of resamples just done


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
def _known_counts(units: int, seed: int) -> list[npt.NDArray[np.uint16]]:
    """All resamples of few rows that were asked for so far, cached: one measure after the other asks for the same."""
    return [np.empty((0, units), dtype=np.uint16)]


def _draw_all_counts(units: int, resamples: int, seed: int) -> npt.NDArray[np.uint16]:
    known = _known_counts(units, seed)
    if len(known[0]) < resamples:
        rng, counts = np.random.default_rng(seed), np.empty((resamples, units), dtype=np.uint16)
        for i in range(resamples):
            counts[i] = _draw_counts(rng, units, 1)[0]
        known[0] = counts
    return known[0][:resamples]


def _draw_counts(rng: np.random.Generator, units: int, size: int) -> Ints:
    return np.stack([np.bincount(rng.integers(units, size=units), minlength=units) for _ in range(size)])


def check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InputError(
            "confidence", expected="a share strictly between 0 and 1", got=f"{confidence:g}", fix="use 0.95"
        )
