"""Centred isotonic regression: isotonic without flat stretches."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.calibrators._scores import STEP_SCOPE, OfScores, TiedScores, blocks, free_fit, tied_scores
from calibrant.core.arrays import Array
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions import Predictions


@dataclass(frozen=True)
class CentredIsotonic(OfScores):
    """The isotonic fit with each flat block shrunk to its mean score, linear in between, constant outside.

    Makes fewer ties than isotonic regression, but still says 0 or 1 at the ends.

    >>> p = Predictions.from_probs([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]], [1, 0, 1, 0])
    >>> CentredIsotonic().fit(p)(p).confidence.round(6)  # knots (0.6, 0), (0.75, 1/2), (0.9, 1)
    array([0.      , 0.333333, 0.666667, 1.      ])
    """

    title: ClassVar[str] = "Centred isotonic regression"
    reference: ClassVar[str] = "Oron, Flournoy, Statistics in Biopharmaceutical Research 2017"
    says_zero: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        lines = [_line(tied) for tied in tied_scores(p, self.scope)]
        step = Curves([x for x, _ in lines], [y for _, y in lines], "line", STEP_SCOPE[self.scope])
        return self.build_map(p, step, fit=free_fit(p, self.scope))


def _line(tied: TiedScores) -> tuple[Array, Array]:
    starts, value = blocks(tied)
    x = np.add.reduceat(tied.x * tied.size, starts) / np.add.reduceat(tied.size, starts)
    ends = np.append(starts[1:], len(tied.x)) - 1
    return np.clip(x, tied.x[starts], tied.x[ends]), value
