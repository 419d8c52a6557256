"""Calibration loss: what an optimal recalibration would gain."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures.refinement import Refinement


@dataclass(frozen=True)
class Calibration(Refinement):
    """A proper loss minus what is left of it after cross-fitted recalibration.

    Falls below 0 when recalibration hurts: then the model needs no calibration.

    >>> p = Predictions.from_probs([[0.99, 0.01]] * 40, labels=[0, 1, 0, 0] * 10)
    >>> round(Calibration()(p), 1)  # 0.99 is claimed, 0.75 is true
    0.6
    """

    title: ClassVar[str] = "Calibration loss"
    reference: ClassVar[str] = "Brocker, 2009; Berta et al., 2025"
    without_interval: ClassVar[str] = "no interval of a calibration loss is known that holds: its maps are fitted too"
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def rows(self, p: Predictions) -> Array:
        return self.loss_rows(p) - super().rows(p)

    @property
    def definition(self) -> str:
        return f"{self.loss} minus its value after {self.folds}-fold cross-fitted recalibration by {self.by}"
