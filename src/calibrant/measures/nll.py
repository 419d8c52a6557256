"""Negative log-likelihood, also called log loss or cross-entropy."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures._base import RowMeasure, at_least


@dataclass(frozen=True)
class NLL(RowMeasure):
    """Mean of -ln p(true class): a proper score, which falls with better calibration or better refinement.

    One confident mistake can dominate it; probabilities are floored at `floor` (0 for none, from logits).

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(NLL()(p), 4)  # -(ln 0.9 + ln 0.4) / 2
    0.5108
    """

    floor: float = 1e-12

    title: ClassVar[str] = "Negative log-likelihood"
    reference: ClassVar[str] = "Good, 1952"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("floor", self.floor, 0)

    def rows(self, p: Predictions) -> Array:
        lowest = np.log(self.floor) if self.floor > 0 else -np.inf
        return -np.minimum(np.maximum(p.true_log_prob, lowest), 0.0)

    @property
    def definition(self) -> str:
        return f"mean of -ln p(true class), natural logarithm, p floored at {self.floor:g}"
