"""Mathematics that several ranking measures share."""

import numpy as np

from calibrant.core.arrays import Array


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
