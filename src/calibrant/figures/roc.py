"""ROC: how many positive rows are found, and at the price of how many false alarms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.predictions import Predictions
from calibrant.figures._base import Row
from calibrant.figures._roc import ROCFigure, Share
from calibrant.figures._task import positive_curves


@dataclass(frozen=True)
class ROC(ROCFigure):
    """Share of the positive rows above a threshold against the share of the negative ones, as the threshold falls.

    Blind to calibration and to how rare positives are: `precision_recall` is not. Of two classes, class 1 is positive.

    >>> rows = ROC().data({"demo": Predictions.binary([0.9, 0.6, 0.7], [1, 0, 1])})
    >>> rows[0]["roc_auc"], [(row["false_alarms"], row["found"]) for row in rows]
    (1.0, [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (1.0, 1.0)])
    """

    title: ClassVar[str] = "ROC"
    reference: ClassVar[str] = "Hanley, McNeil, Radiology 1982"
    ones: ClassVar[Share] = Share("found", "positive rows found", "positive rows found")
    zeros: ClassVar[Share] = Share("false_alarms", "negative rows flagged (false alarms)", "negative rows flagged")
    area: ClassVar[tuple[str, str]] = ("roc_auc", "ROC AUC")
    threshold: ClassVar[str] = "P(positive) from"
    sentence: ClassVar[str] = (
        "Share of positive rows found against share of negative rows flagged, as the threshold falls."
    )
    undefined: ClassVar[str] = "all rows are of one kind"

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        return [row for name, curve in positive_curves("roc", models).items() for row in self.curve(name, curve)]
