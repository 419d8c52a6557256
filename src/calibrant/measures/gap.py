"""Signed gap between mean confidence and accuracy."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures._base import Direction, RowMeasure, Unit


@dataclass(frozen=True)
class Gap(RowMeasure):
    """Mean confidence minus accuracy: positive is overconfident, negative underconfident.

    Errors of opposite sign cancel, so 0 does not mean calibrated; the ECE is never smaller than its size.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(Gap()(p), 3)
    0.25
    """

    title: ClassVar[str] = "Signed gap"
    other_names: ClassVar[tuple[str, ...]] = ("bias", "signed_calibration_error")
    unit: ClassVar[Unit] = "percent"
    meaning: ClassVar[str] = "What it says on average minus how often it is right: above zero is overconfident."
    meaning_binary: ClassVar[str] = (
        "What it predicts on average minus the share of positives: above zero, it predicts too many."
    )
    reference: ClassVar[str] = "Guo et al., ICML 2017"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 91 to 95 % of trials"
    direction: ClassVar[Direction] = "zero"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def rows(self, p: Predictions) -> Array:
        return p.score - p.outcome

    @property
    def definition(self) -> str:
        return "mean confidence minus accuracy; positive = overconfident"

    def definition_for(self, p: Predictions) -> str:
        if p.task == "binary":
            return "mean P(positive) minus the share of positives; positive = too many promised"
        return self.definition
