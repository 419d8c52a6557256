"""One map per proximity group: rows near to others and rows far from them are calibrated apart."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.json import read_typed, whole
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.repairing.fit import fit
from calibrant.rescorers import check_arrays, features_of, load_arrays, matrix, save_arrays
from calibrant.rescorers.density_ratio import DensityRatio, check_neighbours, proximity


@dataclass(frozen=True)
class ProximityGroups:
    """One calibration map per proximity group: rows near to others and rows far from them, in equal shares.

    Its companion for calibrators that bin: what it learns from each group is less, so give it enough rows.
    """

    what: str = "temperature"  # any calibrator of the catalogue
    groups: int = 5
    neighbours: int = 10

    title: ClassVar[str] = "Calibration by proximity"
    reference: ClassVar[str] = DensityRatio.reference

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        if self.groups < 1:
            raise InputError("groups", expected="at least 1", got=str(self.groups), fix="use 5")

    def fit(self, p: Predictions) -> "FittedProximityGroups":
        x = matrix(features_of(p, "ProximityGroups"), "ProximityGroups")
        d = proximity(x, x, self.neighbours, among_known=True)
        edges = np.quantile(d, np.arange(1, self.groups) / self.groups)
        return FittedProximityGroups(self.neighbours, x, edges, fit(group_rows(p, d, edges), self.what, by_group=True))


@dataclass(frozen=True, eq=False)
class FittedProximityGroups:
    """Held-out features, the edges between the groups, and a map with one part per group."""

    neighbours: int
    known: Array  # (n, dimensions)
    edges: Array  # (groups - 1,)
    map: Map

    def predict(self, p: Predictions) -> Predictions:
        """Calibrate each row by the map of its proximity group; groups that the rows had before are kept."""
        x = matrix(features_of(p, "ProximityGroups"), "ProximityGroups", self.known.shape[1])
        calibrated = self.map(group_rows(p, proximity(x, self.known, self.neighbours), self.edges))
        return calibrated.with_values(
            calibrated.values, calibrated.score_type, replace(calibrated.row_data, groups=p.groups)
        )

    def save(self, path: str | Path) -> None:
        """Save to one .npz file, whole or not at all."""
        facts: dict[str, Any] = {"neighbours": self.neighbours, "map": self.map.to_dict()}
        save_arrays(path, "ProximityGroups", {"known": self.known, "edges": self.edges}, facts)

    @classmethod
    def load(cls, path: str | Path) -> "FittedProximityGroups":
        arrays, facts = load_arrays(path, "ProximityGroups")
        with whole(str(path), fix="fit and save it again"):
            neighbours, m = read_typed(facts, "neighbours", int), Map.from_dict(facts["map"])
            edges = np.append(arrays.pop("edges"), np.inf)  # none, where there is one group
            check_arrays(arrays, {"known": (None, None)})
            if edges.dtype.kind != "f" or not (np.diff(edges) >= 0).all() or np.isnan(edges).any():
                raise ValueError("edges do not rise")
            if not 1 <= neighbours <= len(arrays["known"]) or m.groups is None:
                raise ValueError("its neighbours or its map do not suit it")
            return cls(neighbours, arrays["known"].astype(np.float64), edges[:-1], m)


def group_rows(p: Predictions, d: Array, edges: Array) -> Predictions:
    """The rows with their proximity group: 0 holds those farthest from others."""
    groups = np.searchsorted(edges, d, side="right")
    return p.with_values(p.values, p.score_type, replace(p.row_data, groups=groups))
