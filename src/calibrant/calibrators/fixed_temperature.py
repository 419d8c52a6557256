"""A temperature that is given, not fitted."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import EVERY_TASK, Calibrator, build_scaling
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class FixedTemperature(Calibrator):
    """Every logit divided by a number of your choice.

    What Singh et al. 2021 call TS: 1.5 on CIFAR, 1.1 on ImageNet, never fitted to the model.

    >>> p = Predictions.from_logits([[3.0, 0.0], [0.0, 3.0]], [0, 1])
    >>> FixedTemperature(T=1.5).fit(p)(p).logits.tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    T: float = 1.5

    title: ClassVar[str] = "Fixed temperature"
    reference: ClassVar[str] = (
        "Singh, Bay, Sengupta, Mirabile, On the Dark Side of Calibration for Modern Neural Networks, 2021"
    )
    tasks: ClassVar[tuple[Task, ...]] = EVERY_TASK
    keeps_argmax: ClassVar[bool] = True
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.T > 0:
            raise InputError("T", expected="a number above 0", got=f"{self.T:g}", fix="use for instance 1.5")

    def fit(self, p: Predictions) -> Map:
        return self.build_map(p, build_scaling(self.T), T=self.T)
