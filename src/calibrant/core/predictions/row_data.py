"""Data of rows beside scores and labels: task, weights, clusters, groups, ids, features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.io.missing import MissingCount

Task = Literal["multiclass", "binary", "confidence", "choice"]
ScoreType = Literal["logits", "probs"]

ARRAYS = ("features", "ids", "groups", "predicted", "weights", "clusters", "exists")


@dataclass(frozen=True)
class RowArguments:
    """The optional arrays of a constructor, one entry per row, as the user passes them."""

    features: npt.ArrayLike | None = None
    ids: npt.ArrayLike | None = None
    groups: npt.ArrayLike | None = None
    weights: npt.ArrayLike | None = None
    clusters: npt.ArrayLike | None = None

    def map(self, change: Callable[[str, npt.ArrayLike], npt.ArrayLike]) -> "RowArguments":
        """The same arguments with each array replaced by `change(name, array)`."""
        given = {name: array for name, array in vars(self).items() if array is not None}
        return RowArguments(**{name: change(name, array) for name, array in given.items()})


@dataclass(frozen=True, kw_only=True)
class RowData:
    """Valid data of rows beside scores and labels; every array has one entry per row."""

    features: Floats | None = None  # (n, d) input of the last layer
    ids: npt.NDArray[Any] | None = None  # integers or strings that name the rows
    groups: npt.NDArray[Any] | None = None  # integers or strings: the segment a row belongs to
    predicted: Ints | None = None  # the prediction, where it is not the class of the largest score
    seen: float = 0.0  # share of these rows that the map which produced them was fitted on
    weights: Array | None = None  # (n,) counts of rows, or shares whose mean is one
    unit: float = 1.0  # the user's weight that became a weight of one: batches of a stream need the same unit
    clusters: Ints | None = None  # 0, 1, ...: rows of one cluster depend on each other
    task: Task = "multiclass"
    exists: npt.NDArray[np.bool_] | None = None  # (n, k) the options that each row has, where rows differ
    classes: tuple[str, ...] = ()  # names of the classes, where they have any
    missing: MissingCount | None = None  # rows of the file without a score
    notes: tuple[str, ...] = ()  # how a file was read, for readers of the numbers

    @property
    def shared_clusters(self) -> Ints | None:
        """The clusters, unless each has one row: such rows are as independent as rows without clusters."""
        single = self.clusters is not None and len(self.clusters) > 0 and self.clusters.max() + 1 == len(self.clusters)
        return None if single else self.clusters

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        named = {name: getattr(self, name) for name in ARRAYS}
        return {name: array for name, array in named.items() if array is not None}

    def take(self, rows: Ints) -> "RowData":
        taken: dict[str, Any] = {name: array[rows] for name, array in self.arrays().items()}
        if self.clusters is not None:  # numbered without gaps
            taken["clusters"] = np.unique(taken["clusters"], return_inverse=True)[1]
        return replace(self, **taken)
