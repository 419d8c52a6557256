"""Error rate."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures._base import RowMeasure, Unit


@dataclass(frozen=True)
class Error(RowMeasure):
    """Share of rows predicted wrong: 1 - accuracy.

    Says nothing about confidence.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> Error()(p)
    0.5
    """

    title: ClassVar[str] = "Error rate"
    other_names: ClassVar[tuple[str, ...]] = ("err", "zero_one_loss")
    unit: ClassVar[Unit] = "percent"
    of_share: ClassVar[bool] = True
    reference: ClassVar[str] = "-"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 92 to 95 % of trials"

    def rows(self, p: Predictions) -> Array:
        return (~p.correct).astype(np.float64)

    @property
    def definition(self) -> str:
        return "share of rows predicted wrong"
