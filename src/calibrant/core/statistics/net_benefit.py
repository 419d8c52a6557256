"""Net benefit of acting at a threshold (Vickers, Elkin 2006): true positives less false ones by their weight."""

from typing import NamedTuple

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.error_guarantee import at_least
from calibrant.core.statistics.mean_of_levels import mean_of_levels


class NetBenefit(NamedTuple):
    """Net benefit of acting on the rows that reach a threshold, with its interval, and of acting on all rows."""

    value: float
    low: float
    high: float
    all: float


def net_benefit(p: Predictions, threshold: float, level: float = 0.95) -> NetBenefit:
    """The net benefit TP/n - FP/n t/(1 - t) at a threshold t below one. Weights count, and clusters as wholes.

    >>> p = Predictions.binary([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> net_benefit(p, 0.5)[::3]  # one true and one false positive; two of each
    (0.0, 0.0)
    """
    harm = threshold / (1 - threshold)
    gain: Array = np.where(p.outcome, 1.0, -harm)
    acted = at_least(p.score, threshold)
    possible = np.array([1.0, 0.0, -harm])[np.array([acted.any(), not acted.all(), acted.any()])]
    return NetBenefit(*mean_of_levels(p, np.where(acted, gain, 0.0), possible, level), p.mean(gain))
