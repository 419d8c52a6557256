"""What else is known about predictions: their shape, weights, clusters, names."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.missing import Missing

Shape = Literal["classes", "binary", "confidence", "choices"]

ROWS = ("features", "ids", "groups", "predicted", "weights", "clusters", "exists")


@dataclass(frozen=True)
class Extras:
    """What else may be known about the rows; every array has one entry per row."""

    features: Floats | None = None  # (n, d) input of the last layer
    ids: npt.NDArray[Any] | None = None  # integers or strings that name the rows
    groups: npt.NDArray[Any] | None = None  # integers or strings: the segment a row belongs to
    predicted: Ints | None = None  # the prediction, where it is not the class of the largest score
    seen: float = 0.0  # share of these rows that the map which made them was fitted on
    weights: Array | None = None  # (n,) counts of rows, or shares whose mean is one
    unit: float = 1.0  # what a weight of one was when it was given: batches of a stream need the same unit
    clusters: Ints | None = None  # 0, 1, ...: rows of one cluster came together
    shape: Shape = "classes"
    exists: npt.NDArray[np.bool_] | None = None  # (n, k) the options a row has, where rows differ in that
    classes: tuple[str, ...] = ()  # names of the classes, where they have any
    missing: Missing | None = None  # rows of the file that had no score
    notes: tuple[str, ...] = ()  # what else the reader of a file should say about its scores

    @property
    def shared_clusters(self) -> Ints | None:
        """The clusters, unless each has one row: such rows are as independent as rows without clusters."""
        alone = self.clusters is not None and len(self.clusters) > 0 and self.clusters.max() + 1 == len(self.clusters)
        return None if alone else self.clusters

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        named = {name: getattr(self, name) for name in ROWS}
        return {name: array for name, array in named.items() if array is not None}

    def take(self, rows: Ints) -> "Extras":
        taken: dict[str, Any] = {name: array[rows] for name, array in self.arrays().items()}
        if self.clusters is not None:  # numbered without gaps
            taken["clusters"] = np.unique(taken["clusters"], return_inverse=True)[1]
        return replace(self, **taken)
