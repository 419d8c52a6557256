"""Refinement: the loss that is left when calibration has been repaired."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import at_least
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.cross_fit import By, recalibrate
from calibrant.measures._base import RowMeasure, Streams
from calibrant.measures.brier import Brier
from calibrant.measures.nll import NLL


@dataclass(frozen=True)
class Refinement(RowMeasure):
    """A proper loss after cross-fitted recalibration: what no monotone repair can take away.

    Only as good as the recalibration: `by=temperature` leaves miscalibration that one number cannot repair. The
    interval holds the fitted maps fixed.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]] * 20, labels=[0, 1] * 10 + [0, 0] * 10)
    >>> Refinement()(p) < NLL()(p) + 0.05
    True
    """

    loss: Literal["nll", "brier"] = "nll"
    by: By = "temperature"
    folds: int = 5

    title: ClassVar[str] = "Refinement loss"
    streams: ClassVar[Streams] = "no"  # maps are fitted on all rows
    reference: ClassVar[str] = "Brocker, 2009; Berta et al., 2025"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)
    fixed_maps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("folds", self.folds, 2)

    def rows(self, p: Predictions) -> Array:
        return self.loss_rows(recalibrate(p, self.by, folds=self.folds))

    def loss_rows(self, p: Predictions) -> Array:
        return NLL().rows(p) if self.loss == "nll" else Brier().rows(p)

    @property
    def definition(self) -> str:
        return f"{self.loss} after {self.folds}-fold cross-fitted recalibration by {self.by}, smoothed by 1/(n+1)"
