"""Average precision for finding the right predictions."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import average_precision
from calibrant.measures._base import Direction, RankingMeasure


@dataclass(frozen=True)
class AUPRSuccess(RankingMeasure):
    """Average precision with correct predictions as positives and confidence as score.

    Its chance level is the accuracy, so do not compare it between models of different accuracy.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], labels=[0, 1, 0])
    >>> round(AUPRSuccess()(p), 4)  # precision 1 at the first positive, 2/3 at the second
    0.8333
    """

    title: ClassVar[str] = "AUPR-success"
    reference: ClassVar[str] = "Hendrycks, Gimpel, ICLR 2017"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 92 to 96 % of trials"
    direction: ClassVar[Direction] = "up"
    needs_both: ClassVar[bool] = True

    def from_curve(self, curve: Curve) -> float:
        positives, negatives = curve.groups
        return average_precision([(positives[::-1], negatives[::-1])])

    @property
    def definition(self) -> str:
        return "average precision, correct as positive, score = confidence, tie groups as a whole"
