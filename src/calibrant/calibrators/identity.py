"""No calibration."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import EVERY_TASK, Calibrator
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class Identity(Calibrator):
    """Changes nothing: the candidate every other calibrator has to beat.

    On small calibration sets it often wins.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> Identity().fit(p)(p).confidence
    array([0.9, 0.6])
    """

    title: ClassVar[str] = "Identity"
    reference: ClassVar[str] = "-"
    tasks: ClassVar[tuple[Task, ...]] = EVERY_TASK
    keeps_argmax: ClassVar[bool] = True
    complexity: ClassVar[int] = 0
    learns: ClassVar[bool] = False

    def fit(self, p: Predictions) -> Map:
        return self.build_map(p)
