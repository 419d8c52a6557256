"""Calibration slope (Cox): are the scores too extreme?"""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.predictions import Predictions  # noqa: F401  used by the example
from calibrant.measures._base import Direction
from calibrant.measures._of_log_odds import FLOORED, LogOddsMeasure


@dataclass(frozen=True)
class Slope(LogOddsMeasure):
    """Slope of the logistic regression of outcomes on the log-odds of their scores: 1 is best, below 1 is too extreme.

    A slope of 1 does not mean calibrated: the scores may still be too high or too low throughout, see `in_the_large`.

    >>> p = Predictions.binary([0.1, 0.1, 0.1, 0.9, 0.9, 0.9], [0, 0, 1, 0, 1, 1])
    >>> round(Slope()(p), 4)  # odds of 1/2 and 2 where 1/9 and 9 are promised: ln 2 / ln 9
    0.3155
    """

    title: ClassVar[str] = "Calibration slope"
    meaning: ClassVar[str] = "Are the scores too extreme? 1 is right, below 1 is too extreme, above 1 too timid."
    reference: ClassVar[str] = "Cox, Biometrika 1958"
    direction: ClassVar[Direction] = "one"
    coefficient: ClassVar[int] = 1

    @property
    def definition(self) -> str:
        return f"slope of the logistic regression of correct on the {FLOORED}"
