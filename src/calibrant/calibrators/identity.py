"""No calibration."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import EVERY_SHAPE, Calibrator
from calibrant.core.extras import Shape
from calibrant.core.map import Map
from calibrant.core.predictions import Predictions


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
    shapes: ClassVar[tuple[Shape, ...]] = EVERY_SHAPE
    keeps_argmax: ClassVar[bool] = True
    complexity: ClassVar[int] = 0
    learns: ClassVar[bool] = False

    def fit(self, p: Predictions) -> Map:
        return self.made(p)
