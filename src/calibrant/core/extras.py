"""What else may be known about the rows of predictions."""

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from calibrant.core.arrays import Floats, Ints


@dataclass(frozen=True)
class Extras:
    """What else may be known about the rows; every array has one entry per row."""

    features: Floats | None = None  # (n, d) input of the last layer
    ids: npt.NDArray[Any] | None = None  # integers or strings that name the rows
    groups: npt.NDArray[Any] | None = None  # integers or strings: the segment a row belongs to
    predicted: Ints | None = None  # the prediction, where it is not the class of the largest score
    seen: float = 0.0  # share of these rows that the map which made them was fitted on

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        named = {name: getattr(self, name) for name in ("features", "ids", "groups", "predicted")}
        return {name: array for name, array in named.items() if array is not None}

    def take(self, rows: Ints) -> "Extras":
        return Extras(**{name: array[rows] for name, array in self.arrays().items()}, seen=self.seen)
