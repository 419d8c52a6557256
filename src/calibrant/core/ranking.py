"""Ranking: mathematics that several measures share, and rank correlations of two columns."""

import numpy as np

from calibrant.core.arrays import Array


def area_under_roc(positives: Array, negatives: Array) -> float:
    """Chance that a positive outranks a negative, from tie groups in ascending order of score; ties count half."""
    wanted, others = positives.sum(), negatives.sum()
    if wanted == 0 or others == 0:
        return float("nan")
    below = np.cumsum(negatives) - negatives
    return float(positives @ (below + negatives / 2) / (wanted * others))


def average_precision(positives: Array, negatives: Array) -> float:
    """Sum of precision times gain in recall over tie groups, from the highest score down."""
    found = np.cumsum(positives)
    if found[-1] == 0:
        return float("nan")
    precision = found / (found + np.cumsum(negatives))
    return float(positives @ precision / found[-1])


def area_under_risk(hits: Array, misses: Array) -> float:
    """AURC from tie groups in ascending confidence: risk at the end of each group, weighted by its size."""
    wrong, size = misses[::-1], (hits + misses)[::-1]
    covered = np.cumsum(size)
    return float(size @ (np.cumsum(wrong) / covered) / covered[-1])


def kendall(a: Array, b: Array) -> float:
    """Kendall's tau-b; NaN where a column is constant or fewer than two rows are left."""
    from scipy.stats import kendalltau

    return float(kendalltau(a, b).statistic) if _varied(a, b) else float("nan")


def spearman(a: Array, b: Array) -> float:
    """Spearman's rho, ties sharing their ranks; NaN as above."""
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic) if _varied(a, b) else float("nan")


def _varied(a: Array, b: Array) -> bool:
    return len(a) > 1 and bool(np.ptp(a) > 0) and bool(np.ptp(b) > 0)
