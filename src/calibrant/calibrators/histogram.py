"""Histogram binning: the share of positive outcomes among the rows of a bin."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.calibrators._scores import (
    STEP_SCOPE,
    OfScores,
    TiedScores,
    X,
    check_bins,
    equal_mass_edges,
    free_fit,
    middles,
    ordered_scores,
)
from calibrant.core.arrays import Array
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions import Predictions


@dataclass(frozen=True)
class Histogram(OfScores):
    """The share of positive outcomes in each of `bins` bins of equal mass; an empty bin says its middle.

    Gives at most `bins` different values, so rows become ties. Equal scores stay together: fewer bins are possible.

    >>> p = Predictions.from_probs([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]], [0, 1, 0, 0])
    >>> Histogram(bins=2).fit(p)(p).confidence  # 0.6 and 0.7: 1 of 2; 0.8 and 0.9: 2 of 2
    array([0.5, 0.5, 1. , 1. ])
    """

    bins: int = 15

    title: ClassVar[str] = "Histogram binning"
    words: ClassVar[str] = "histogram binning"
    reference: ClassVar[str] = "Zadrozny, Elkan, ICML 2001"
    says_zero: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bins(self.bins)

    def fit(self, p: Predictions) -> Map:
        tied_scores, on = ordered_scores(p, self.scope)
        stairs = [self._stair(tied, on) for tied in tied_scores]
        step = Curves([x for x, _ in stairs], [y for _, y in stairs], "stair", STEP_SCOPE[self.scope], on)
        return self.build_map(p, step, fit=free_fit(p, self.scope))

    def _stair(self, tied: TiedScores, on: X) -> tuple[Array, Array]:
        from scipy.special import expit

        edges = equal_mass_edges(tied, self.bins)
        edges = edges if on == "log_odds" else edges[edges < 1]
        size, middle = tied.above(edges, tied.size), middles(expit(edges) if on == "log_odds" else edges)
        share = np.divide(tied.above(edges, tied.positives), size, out=middle, where=size > 0)
        return edges, np.clip(share, 0.0, 1.0)  # shares of weights round
