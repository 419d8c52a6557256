"""Data of rows beside scores and labels: task, weights, clusters, groups, ids, features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, cast

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Integers, Ints
from calibrant.core.io.missing import MissingCount

Task = Literal["multiclass", "binary", "confidence", "choice"]
ScoreType = Literal["logits", "probs"]

ARRAYS = ("features", "ids", "groups", "predicted", "weights", "clusters", "option_mask")


class Rows(TypedDict, total=False):
    """The optional arrays of every constructor of `Predictions`, one entry per row, as the user passes them."""

    features: npt.ArrayLike | None  # (n, d) input of the last layer
    ids: npt.ArrayLike | None  # integers or strings that name the rows
    groups: npt.ArrayLike | None  # integers or strings: the segment a row belongs to
    weights: npt.ArrayLike | None  # (n,) counts of rows, or shares
    clusters: npt.ArrayLike | None  # integers or strings: rows of one cluster depend on each other


def map_rows(rows: Rows, change: Callable[[str, npt.ArrayLike], npt.ArrayLike]) -> Rows:
    """Apply `change(name, array)` to each array of the arguments."""
    arrays = cast(dict[str, npt.ArrayLike | None], rows)
    return cast(Rows, {name: change(name, array) for name, array in arrays.items() if array is not None})


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
    clusters: Integers | None = None  # 0, 1, ...: rows of one cluster depend on each other
    cluster_names: npt.NDArray[Any] | None = None  # of cluster 0, 1, ..., where the user has names for them
    task: Task = "multiclass"
    option_mask: npt.NDArray[np.bool_] | None = None  # (n, k) the options that each row has, where rows differ
    classes: tuple[str, ...] = ()  # names of the classes, where they have any
    missing: MissingCount | None = None  # rows of the file without a score
    notes: tuple[str, ...] = ()  # how a file was read, for readers of the numbers

    @property
    def shared_clusters(self) -> Integers | None:
        """The clusters, unless each has one row: such rows are as independent as rows without clusters."""
        single = self.clusters is not None and len(self.clusters) > 0 and self.clusters.max() + 1 == len(self.clusters)
        return None if single else self.clusters

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: array for name in ARRAYS if (array := getattr(self, name)) is not None}

    def slice_rows(self, rows: slice) -> "RowData":
        """The data of rows that follow each other; clusters keep their numbers."""
        return replace(self, **{name: array[rows] for name, array in self.arrays().items()})  # type: ignore[arg-type]

    def take(self, rows: Ints) -> "RowData":
        arrays: dict[str, Any] = {name: array[rows] for name, array in self.arrays().items()}
        if self.clusters is not None:  # numbered without gaps
            left, arrays["clusters"] = np.unique(arrays["clusters"], return_inverse=True)
            arrays["cluster_names"] = None if self.cluster_names is None else self.cluster_names[left]
        return replace(self, **arrays)
