"""Ranking: mathematics that several measures share, and rank correlations of two columns."""

from collections.abc import Iterable

import numpy as np

from calibrant.core.arrays import Array


def area_under_roc(groups: Iterable[tuple[Array, Array]]) -> float:
    """Chance that a positive outranks a negative, ties counting half.

    From positives and negatives in each group of equal scores, ascending, in one block or several.
    """
    area, wanted, others = 0.0, 0.0, 0.0
    for positives, negatives in groups:
        below = others + np.cumsum(negatives) - negatives
        area += float(positives @ (below + negatives / 2))
        wanted, others = wanted + float(positives.sum()), others + float(negatives.sum())
    return area / (wanted * others) if wanted and others else float("nan")


def average_precision(groups: Iterable[tuple[Array, Array]]) -> float:
    """Sum of precision times gain in recall over tie groups, from the highest score down.

    From positives and negatives in each group, descending, in one block or several.
    """
    area, wanted, others = 0.0, 0.0, 0.0
    for positives, negatives in groups:
        true_positives, false_positives = wanted + np.cumsum(positives), others + np.cumsum(negatives)
        covered = true_positives + false_positives
        precision = np.divide(
            true_positives, covered, out=np.zeros_like(true_positives), where=covered > 0
        )  # weights may underflow to 0
        area += float(positives @ precision)
        wanted, others = float(true_positives[-1]), float(false_positives[-1])
    return area / wanted if wanted else float("nan")


def area_under_risk(positives: Array, negatives: Array) -> float:
    """AURC from tie groups in ascending confidence: risk at the end of each group, weighted by its size."""
    wrong, size = negatives[::-1], (positives + negatives)[::-1]
    covered = np.cumsum(size)
    risk = np.divide(np.cumsum(wrong), covered, out=np.zeros_like(covered), where=covered > 0)
    return float(size @ risk / covered[-1])


def answered_at_error(positives: Array, negatives: Array, most: float) -> Array:
    """The largest share that can be answered, from the most confident down, with at most this share of errors.

    Each line (resamples, groups) holds tie groups in descending confidence; a group is answered whole or not at all.

    >>> answered_at_error(np.array([[9.0, 1.0]]), np.array([[1.0, 1.0]]), 0.1)
    array([0.83333333])
    """
    covered, wrong = np.cumsum(positives + negatives, axis=1), np.cumsum(negatives, axis=1)
    allowed = wrong <= most * covered * (1 + 1e-12)
    total = covered[:, -1]
    return np.asarray(np.where(allowed, covered, 0.0).max(axis=1) / np.where(total > 0, total, 1.0))


def kendall(a: Array, b: Array) -> float:
    """Kendall's tau-b; NaN where a column is constant or fewer than two rows are left."""
    from scipy.stats import kendalltau

    return float(kendalltau(a, b).statistic) if _varies(a, b) else float("nan")


def spearman(a: Array, b: Array) -> float:
    """Spearman's rho, ties sharing their ranks; NaN where a column is constant or fewer than two rows are left."""
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic) if _varies(a, b) else float("nan")


def _varies(a: Array, b: Array) -> bool:
    return len(a) > 1 and bool(np.ptp(a) > 0) and bool(np.ptp(b) > 0)
