"""Average precision: how pure are the highest scores?"""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.ranking import average_precision
from calibrant.measures._base import Direction
from calibrant.measures._positive import PositiveMeasure


@dataclass(frozen=True)
class AveragePrecision(PositiveMeasure):
    """Share of positives among the rows above a threshold, averaged over the thresholds at which positives are found.

    Its chance level is the share of positives, so do not compare it between sets with different shares.

    >>> p = Predictions.binary([0.9, 0.8, 0.7], [1, 0, 1])
    >>> round(AveragePrecision()(p), 4)  # precision 1 at the first positive, 2/3 at the second
    0.8333
    """

    title: ClassVar[str] = "Average precision"
    reference: ClassVar[str] = "Davis, Goadrich, ICML 2006"
    direction: ClassVar[Direction] = "up"

    def on(self, curve: Curve) -> float:
        hits, misses = curve.groups
        return average_precision(hits[::-1], misses[::-1]) if misses.any() else float("nan")

    @property
    def definition(self) -> str:
        return "average precision of P(positive) for being positive, tie groups as a whole, no interpolation"

    def defined(self, p: Predictions) -> str:
        return self.definition
