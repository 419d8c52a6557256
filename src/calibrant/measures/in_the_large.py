"""Calibration in the large: are the scores too high or too low on average, in log-odds?"""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.predictions import Predictions  # noqa: F401  used by the example
from calibrant.measures._base import Direction
from calibrant.measures._of_log_odds import FLOORED, LogOddsMeasure


@dataclass(frozen=True)
class InTheLarge(LogOddsMeasure):
    """Constant to add to all log-odds so that scores are right on average: 0 is best, below 0 they promise too much.

    Errors of opposite sign cancel, so 0 does not mean calibrated. A regression over all rows: not computed from sums.

    >>> p = Predictions.binary([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0])
    >>> round(InTheLarge()(p), 4)  # odds of 1/3 where 1 is promised: -ln 3
    -1.0986
    """

    title: ClassVar[str] = "Calibration in the large"
    other_names: ClassVar[tuple[str, ...]] = ("citl",)
    meaning: ClassVar[str] = "What must be added to all log-odds: below 0, the scores promise too much on average."
    reference: ClassVar[str] = "Cox, Biometrika 1958; Steyerberg, Clinical Prediction Models, 2019"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 92 to 96 % of trials"
    direction: ClassVar[Direction] = "zero"
    undefined_for: ClassVar[str] = "rows of one class only"
    coefficient: ClassVar[int] = 0
    fixed_slope: ClassVar[bool] = True

    @property
    def definition(self) -> str:
        return f"intercept of the logistic regression of correct with the {FLOORED} as offset (slope 1)"
