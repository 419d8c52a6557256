"""Mean entropy of the predicted distributions."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.measures._base import Direction, RowMeasure


@dataclass(frozen=True)
class Entropy(RowMeasure):
    """How spread out the probabilities are, in nats; at most ln k.

    Describes, does not judge: neither high nor low entropy is calibrated by itself.

    >>> p = Predictions.from_probs([[0.5, 0.5], [1.0, 0.0]], labels=[0, 0])
    >>> round(Entropy()(p), 4)  # (ln 2 + 0) / 2
    0.3466
    """

    title: ClassVar[str] = "Entropy"
    reference: ClassVar[str] = "Shannon, 1948"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 92 to 96 % of trials"
    direction: ClassVar[Direction] = "none"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    tasks: ClassVar[tuple[Task, ...]] = ("multiclass", "binary", "choice")

    def rows(self, p: Predictions) -> Array:
        self.check_shape(p)
        return p.entropy

    @property
    def definition(self) -> str:
        return "mean entropy of the predicted distribution, in nats"
