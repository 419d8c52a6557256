"""Brier score."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures._base import RowMeasure


@dataclass(frozen=True)
class Brier(RowMeasure):
    """Squared distance between the probabilities and the one-hot truth: a proper score.

    Libraries differ in the form: `sum` over classes (0 to 2), `mean_k` (divided by k), `half`, `top` (c - a)^2.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(Brier()(p), 3)  # (0.02 + 0.72) / 2
    0.37
    """

    form: Literal["sum", "mean_k", "half", "top"] = "sum"

    title: ClassVar[str] = "Brier score"
    other_names: ClassVar[tuple[str, ...]] = ("brier_score_loss", "mse")
    name_hint: ClassVar[str] = "the squared error of the probabilities"
    meaning: ClassVar[str] = "Squared distance of the probabilities from the truth; rewards the same two things."
    reference: ClassVar[str] = "Brier, 1950"
    bounds: ClassVar[tuple[float, float]] = (0.0, 2.0)

    def rows(self, p: Predictions) -> Array:
        if self.form == "top":
            return np.asarray((p.confidence - p.correct) ** 2)
        if p.task in ("binary", "confidence"):
            return np.asarray((p.score - p.outcome) ** 2)
        return (
            np.maximum(p.squared_probs_sum + (1.0 - 2.0 * p.true_prob), 0.0)
            / {"sum": 1, "half": 2, "mean_k": p.k}[self.form]
        )

    @property
    def definition(self) -> str:
        return {
            "sum": "squared error summed over classes, 0 to 2",
            "mean_k": "squared error averaged over classes",
            "half": "half of the squared error summed over classes, 0 to 1",
            "top": "squared error of the top-label confidence, (c - a)^2",
        }[self.form]

    def definition_for(self, p: Predictions) -> str:
        if self.form == "top" or p.task not in ("binary", "confidence"):
            return self.definition
        score = "P(positive) from whether the row is positive" if p.task == "binary" else "confidence from being right"
        return f"squared distance of {score}, 0 to 1"
