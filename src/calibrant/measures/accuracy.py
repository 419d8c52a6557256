"""Accuracy."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures._base import Direction, RowMeasure, Unit


@dataclass(frozen=True)
class Accuracy(RowMeasure):
    """Share of rows whose largest score is on the true class.

    Says nothing about confidence; ties go to the lowest class index.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> Accuracy()(p)
    0.5
    """

    title: ClassVar[str] = "Accuracy"
    other_names: ClassVar[tuple[str, ...]] = ("acc", "accuracy_score", "top1")
    unit: ClassVar[Unit] = "percent"
    of_share: ClassVar[bool] = True
    meaning: ClassVar[str] = "How often the prediction is right."
    meaning_binary: ClassVar[str] = "How often the likelier of the two classes is the true one."
    reference: ClassVar[str] = "-"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 92 to 95 % of trials"
    direction: ClassVar[Direction] = "up"

    def rows(self, p: Predictions) -> Array:
        return p.correct.astype(np.float64)

    @property
    def definition(self) -> str:
        return "share of rows predicted right, lowest index wins a tie"

    def definition_for(self, p: Predictions) -> str:
        if p.task == "confidence":
            return "share of predictions that were right"
        return f"{self.definition} (positive above 0.5)" if p.task == "binary" else self.definition
