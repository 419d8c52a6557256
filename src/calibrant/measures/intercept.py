"""Calibration intercept (Cox), beside the slope."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.predictions import Predictions  # noqa: F401  used by the example
from calibrant.measures._base import Direction
from calibrant.measures._of_log_odds import FLOORED, LogOddsMeasure


@dataclass(frozen=True)
class Intercept(LogOddsMeasure):
    """Intercept of the logistic regression of outcomes on the log-odds of their scores: 0 is best.

    It is the recalibrated log-odds of a score of one half, so it moves with the slope. Whether scores are too high or
    too low on average says `in_the_large`, which medicine also calls the calibration intercept.

    >>> p = Predictions.binary([0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8], [0, 0, 1, 0, 1, 1, 1])
    >>> round(Intercept()(p), 4)  # odds of 1/2 and 3: halfway, the log-odds are (ln 3 - ln 2) / 2
    0.2027
    """

    title: ClassVar[str] = "Calibration intercept"
    meaning: ClassVar[str] = "The log-odds that a score of one half really has: 0 is right. Read it beside the slope."
    reference: ClassVar[str] = "Cox, Biometrika 1958"
    direction: ClassVar[Direction] = "zero"
    coefficient: ClassVar[int] = 0

    @property
    def definition(self) -> str:
        return f"intercept of the logistic regression of correct on the {FLOORED}"
