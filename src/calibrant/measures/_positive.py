"""Base class of measures of the positive class: they read P(positive) of binary predictions, or of two classes."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.arrays import Array
from calibrant.core.catalogue import spec_of
from calibrant.core.curves.curve import Curve, Outcomes
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.positive import positive_curve
from calibrant.core.predictions.row_data import Task
from calibrant.measures._base import OfCurve
from calibrant.measures._measure import check_predictions


@dataclass(frozen=True)
class PositiveMeasure(OfCurve):
    """A number read off the sorted curve of P(positive) against being positive; of two classes, class 1 is positive."""

    tasks: ClassVar[tuple[Task, ...]] = ("binary", "multiclass")
    needs_both: ClassVar[bool] = True

    def check_shape(self, p: Predictions) -> None:
        check_predictions(p)
        self.curve(p)

    def scores(self, p: Predictions) -> tuple[Array, Outcomes]:
        return (p.score, p.outcome) if p.task == "binary" else (p.probs[:, 1], p.labels == 1)

    @property
    def score_name(self) -> str:
        return "positive class"

    def curve(self, p: Predictions) -> Curve:
        return positive_curve(p, spec_of(self), instead="ask for auroc_correct")
