"""p-values of several tests, corrected for their number."""

import numpy as np

from calibrant.core.arrays import Array


def holm(chances: Array) -> Array:
    """p-values corrected by Holm's method; NaN stays, and does not count as a test.

    >>> holm(np.array([0.04, 0.01, np.nan]))
    array([0.04, 0.02,  nan])
    """
    corrected = np.full(len(chances), np.nan)
    known = np.flatnonzero(~np.isnan(chances))
    order = known[np.argsort(chances[known], kind="stable")]
    raised = chances[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return corrected


def benjamini_hochberg(chances: Array) -> Array:
    """p-values corrected by Benjamini and Hochberg's method, without NaN; scipy.stats, which has it, loads slowly.

    >>> benjamini_hochberg(np.array([0.04, 0.01, 0.03]))
    array([0.04, 0.03, 0.04])
    """
    order = np.argsort(chances)[::-1]
    raised = chances[order] * (len(chances) / np.arange(len(chances), 0, -1))
    corrected = np.empty(len(chances))
    corrected[order] = np.minimum(np.minimum.accumulate(raised), 1.0)
    return corrected
