"""Average precision for finding the wrong predictions."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import average_precision
from calibrant.measures._base import Direction, RankingMeasure


@dataclass(frozen=True)
class AUPRError(RankingMeasure):
    """Average precision with incorrect predictions as positives and low confidence as score.

    Its chance level is the error rate, so do not compare it between models of different accuracy.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], labels=[0, 1, 0])
    >>> AUPRError()(p)  # the error has the second lowest confidence
    0.5
    """

    title: ClassVar[str] = "AUPR-error"
    reference: ClassVar[str] = "Hendrycks, Gimpel, ICLR 2017"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 90 to 96 % of trials"
    direction: ClassVar[Direction] = "up"
    needs_both: ClassVar[bool] = True

    def from_curve(self, curve: Curve) -> float:
        return average_precision((negatives, positives) for positives, negatives in curve.group_blocks())

    @property
    def definition(self) -> str:
        return "average precision, incorrect as positive, score = -confidence, tie groups as a whole"
