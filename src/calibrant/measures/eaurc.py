"""Excess area under the risk-coverage curve."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import area_under_risk
from calibrant.measures._base import RankingMeasure, Streams


@dataclass(frozen=True)
class EAURC(RankingMeasure):
    """AURC minus the AURC of a perfect ranking with the same error rate.

    The perfect value is the large-n formula e + (1 - e) ln(1 - e), so tiny samples can fall below 0.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(EAURC()(p), 4)  # 0.25 - (0.5 + 0.5 ln 0.5)
    0.0966
    """

    title: ClassVar[str] = "Excess AURC"
    streams: ClassVar[Streams] = "ranking"
    reference: ClassVar[str] = "Geifman, Uziel, El-Yaniv, ICLR 2019"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def from_curve(self, curve: Curve) -> float:
        positives, negatives = curve.groups
        e = negatives.sum() / curve.total
        best = e + (1 - e) * np.log(1 - e) if e < 1 else 1.0
        return float(area_under_risk(positives, negatives) - best)

    @property
    def definition(self) -> str:
        return "AURC - (e + (1 - e) ln(1 - e)), e = error rate"
