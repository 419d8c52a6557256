"""Uncertainty: the part of the top-label Brier score that only accuracy decides."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curves.curve import Curve
from calibrant.measures._base import CurveMeasure


@dataclass(frozen=True)
class Uncertainty(CurveMeasure):
    """Accuracy times error rate.

    Knows nothing of the confidences; it is here so that the Brier decomposition is whole.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> Uncertainty()(p)
    0.25
    """

    title: ClassVar[str] = "Uncertainty"
    reference: ClassVar[str] = "Murphy, 1973"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 86 to 95 % of trials"
    bounds: ClassVar[tuple[float, float]] = (0.0, 0.25)

    def from_curve(self, curve: Curve) -> float:
        rate = curve.outcome_sum[-1] / curve.total
        return float(rate * (1 - rate))

    @property
    def definition(self) -> str:
        return "accuracy (1 - accuracy), the third term of the Brier decomposition"
