"""ROC of correctness: how well confidence tells right predictions from wrong ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.predictions import Predictions
from calibrant.figures._base import Row
from calibrant.figures._roc import ROCFigure, Share


@dataclass(frozen=True)
class CorrectnessROC(ROCFigure):
    """Share of correct predictions kept against share of incorrect ones kept, as the confidence threshold falls.

    Blind to calibration. A model that is always right, or always wrong, has no such curve: one row says so.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], labels=[0, 1, 0])
    >>> rows = CorrectnessROC().data({"demo": p})
    >>> rows[0]["auroc"], [(row["incorrect"], row["correct"]) for row in rows]
    (1.0, [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (1.0, 1.0)])
    """

    title: ClassVar[str] = "ROC of correctness"
    reference: ClassVar[str] = "Hendrycks, Gimpel, ICLR 2017"
    ones: ClassVar[Share] = Share("correct", "correct predictions kept", "correct kept")
    zeros: ClassVar[Share] = Share("incorrect", "incorrect predictions kept", "incorrect kept")
    area: ClassVar[tuple[str, str]] = ("auroc", "AUROC")
    threshold: ClassVar[str] = "confidence from"
    sentence: ClassVar[str] = (
        "Share of correct predictions kept against share of incorrect ones kept, as the threshold falls."
    )
    undefined: ClassVar[str] = "no error, or nothing but errors"

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        return [row for name, p in models.items() for row in self.curve(name, p.top_ranking)]
