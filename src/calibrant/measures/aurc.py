"""Area under the risk-coverage curve."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import area_under_risk
from calibrant.measures._base import RankingMeasure, Streams


@dataclass(frozen=True)
class AURC(RankingMeasure):
    """Error rate among the most confident j predictions, averaged over all j.

    Mixes accuracy and ranking: `eaurc` takes the accuracy out.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> AURC()(p)  # risk 0 at coverage 1/2, 1/2 at coverage 1
    0.25
    """

    title: ClassVar[str] = "Area under the risk-coverage curve"
    streams: ClassVar[Streams] = "ranking"
    meaning: ClassVar[str] = "Error rate when the least confident predictions are left out one by one."
    reference: ClassVar[str] = "Geifman, Uziel, El-Yaniv, ICLR 2019"

    def from_curve(self, curve: Curve) -> float:
        return area_under_risk(*curve.groups)

    @property
    def definition(self) -> str:
        return "mean error rate among the j most confident, j = 1..n, tie groups as a whole"
