"""Rank correlation of two columns."""

import numpy as np

from calibrant.core.arrays import Array


def kendall(a: Array, b: Array) -> float:
    """Kendall's tau-b; NaN where a column is constant or fewer than two rows are left."""
    from scipy.stats import kendalltau

    return float(kendalltau(a, b).statistic) if _varied(a, b) else float("nan")


def spearman(a: Array, b: Array) -> float:
    """Spearman's rho, ties sharing their ranks; NaN as above."""
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1]) if _varied(a, b) else float("nan")


def _varied(a: Array, b: Array) -> bool:
    return len(a) > 1 and bool(np.ptp(a) > 0) and bool(np.ptp(b) > 0)
