"""Density-ratio calibration: how often are rows right that are as sure and as near to others as this one?"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats
from calibrant.core.errors import InputError
from calibrant.core.json import read_typed, whole
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.parallel import pieces, run_pieces, threads
from calibrant.core.predictions import Predictions
from calibrant.rescorers._base import (
    REFIT,
    Rescorer,
    check_arrays,
    features_of,
    load_arrays,
    matrix,
    replace_confidence,
    save_arrays,
)

DENSITY_FLOOR = 1e-10  # of the denominator: where nothing was seen, nothing is trusted
CHUNK_ELEMENTS = 1 << 18  # kernel values at a time, so that 10,000 x 10,000 needs no 800 MB
NARROWEST = 1e-12  # spreads below this share of their values are rounding
FAINTEST = 1e-120  # proximities below this are all alike: their squares would not be numbers


@dataclass(frozen=True)
class DensityRatio(Rescorer):
    """Share of right predictions among held-out rows of like confidence c and proximity d, by two Gaussian kernels.

    d = exp(-mean distance to the nearest held-out features). Where no held-out row had a like c and d both densities
    vanish, and the confidence with them. It can change the order of rows. A row that is farther away than all held-out
    ones has d near 0, as the farthest of these: it is taken for one of them.

    >>> rng = np.random.default_rng(0)
    >>> sure = np.repeat([0.9, 0.6], 50) + rng.uniform(-0.02, 0.02, 100)
    >>> right = np.tile([1, 1, 1, 0], 25) == 1  # three in four, whether they say 0.9 or 0.6
    >>> p = Predictions.from_probs(np.stack([sure, 1 - sure], 1), 1 - right, features=rng.normal(size=(100, 2)))
    >>> fitted = DensityRatio().fit(p)
    >>> fitted.confidence([0.9, 0.6], [0.5, 0.5]).round(1)
    array([0.8, 0.8])
    """

    neighbours: int = 10

    title: ClassVar[str] = "Density-ratio calibration"
    reference: ClassVar[str] = "Xiong, Deng, Koh, Wu, Li, Xu, Hooi, NeurIPS 2023"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_neighbours(self.neighbours)

    def fit(self, p: Predictions) -> "FittedDensityRatio":
        """Learn the two densities on held-out predictions with features."""
        x = matrix(features_of(p, "DensityRatio"), "DensityRatio")
        if p.correct.all() or not p.correct.any():
            got = "none wrong" if p.correct.all() else "none right"
            fix = "give more held-out rows, or use temperature"
            raise InputError("DensityRatio", expected="right and wrong predictions among the rows", got=got, fix=fix)
        points = np.stack([p.confidence, proximity(x, x, self.neighbours, among_known=True)], axis=1)  # (n, 2)
        right, wrong = points[p.correct], points[~p.correct]
        spread = points.std(axis=0)
        widths = np.stack([bandwidth(right, spread), bandwidth(wrong, spread)])
        return FittedDensityRatio(
            neighbours=self.neighbours, known=x, right=right, wrong=wrong, widths=widths, fingerprint=Fingerprint.of(p)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedDensityRatio:
    """Held-out features, and the points (c, d) of right and wrong predictions with the widths of their kernels."""

    neighbours: int
    known: Array  # (n, dimensions)
    right: Array  # (P, 2)
    wrong: Array  # (N, 2)
    widths: Array  # (2, 2): of right and wrong, each for c and d
    fingerprint: Fingerprint | None = None

    def proximity(self, features: npt.ArrayLike) -> Array:
        """Nearness to the held-out features, from 0 to 1."""
        return proximity(matrix(features, "DensityRatio", self.known.shape[1]), self.known, self.neighbours)

    def confidence(self, c: npt.ArrayLike, d: npt.ArrayLike) -> Array:
        """q = f1 / (f1 + f0 N / P), of confidences and proximities."""
        at = np.stack([np.asarray(c, dtype=np.float64), np.asarray(d, dtype=np.float64)], axis=1)
        f1 = density(at, self.right, self.widths[0])
        f0 = density(at, self.wrong, self.widths[1]) * (len(self.wrong) / len(self.right))
        return np.asarray(f1 / np.maximum(f1 + f0, DENSITY_FLOOR))

    def predict(self, p: Predictions) -> Predictions:
        """Predictions with the ratio as confidence."""
        d = self.proximity(features_of(p, "DensityRatio"))
        return replace_confidence(p, np.clip(self.confidence(p.confidence, d), 0.0, 1.0), self.fingerprint)

    def save(self, path: str | Path) -> None:
        """Save to one .npz file, whole or not at all."""
        arrays = {name: getattr(self, name) for name in ("known", "right", "wrong", "widths")}
        fingerprint = None if self.fingerprint is None else self.fingerprint.to_dict()
        save_arrays(path, "DensityRatio", arrays, {"neighbours": self.neighbours, "fingerprint": fingerprint})

    @classmethod
    def load(cls, path: str | Path) -> "FittedDensityRatio":
        arrays, facts = load_arrays(path, "DensityRatio")
        with whole(str(path), fix=REFIT):
            neighbours = read_typed(facts, "neighbours", int)
            pair = (None, 2)
            check_arrays(arrays, {"known": (None, None), "right": pair, "wrong": pair, "widths": (2, 2)})
            floats = {name: array.astype(np.float64) for name, array in arrays.items()}
            points = np.concatenate([floats["right"], floats["wrong"]])
            if not 1 <= neighbours <= len(floats["known"]):
                raise ValueError(f"{neighbours} neighbours among {len(floats['known'])} rows")
            if floats["widths"].min() < NARROWEST * FAINTEST / 100 or floats["widths"].max() > 2:
                raise ValueError("its widths are too small or too large for numbers from 0 to 1")
            if points.min() < 0 or points.max() > 1:
                raise ValueError("its points are not pairs of numbers from 0 to 1")
            return cls(neighbours=neighbours, **floats, fingerprint=Fingerprint.from_dict(facts["fingerprint"]))


def proximity(features: Floats, known: Floats, neighbours: int = 10, *, among_known: bool = False) -> Array:
    """exp(-mean Euclidean distance to the nearest rows of `known`); `among_known` leaves a row itself out.

    >>> line = np.array([[0.0], [1.0], [3.0]])
    >>> -np.log(proximity(line, line, 2, among_known=True))  # of 0: 1 and 3
    array([2. , 1.5, 2.5])
    """
    from scipy.spatial import cKDTree

    least = neighbours + among_known
    if len(known) < least:
        fix = "give more held-out rows, or fewer neighbours"
        raise InputError("proximity", expected=f"at least {least} held-out rows", got=str(len(known)), fix=fix)
    ranks = np.arange(1, neighbours + 1) + among_known  # the nearest of a known row is itself, at distance 0
    distances = cKDTree(known).query(features, k=ranks, workers=threads())[0]  # (n, neighbours)
    return np.asarray(np.exp(-distances.mean(axis=1)))


def bandwidth(points: Array, fallback: Array) -> Array:
    """1.06 sigma n^(-1/6) for each axis of points (n, 2).

    An axis on which they do not vary takes the sigma of all rows, and where these do not vary either, 1: then it says
    nothing, and its factor is the same in both densities.
    """
    sigma = points.std(axis=0)
    least = NARROWEST * np.maximum(np.abs(points).max(axis=0), FAINTEST)
    sigma = np.where(sigma > least, sigma, np.where(fallback > least, fallback, 1.0))
    return np.asarray(1.06 * sigma * len(points) ** (-1 / 6))


def density(at: Array, points: Array, widths: Array) -> Array:
    """Mean of Gaussian product kernels around the points (m, 2), at other points (n, 2)."""
    values = np.empty(len(at))

    def work(rows: slice) -> None:
        exponent = np.zeros((rows.stop - rows.start, len(points)))
        for axis in range(2):
            exponent -= 0.5 * ((at[rows, axis, None] - points[:, axis]) / widths[axis]) ** 2
        values[rows] = np.exp(exponent, out=exponent).mean(axis=1)

    run_pieces(work, pieces(len(at), max(1, CHUNK_ELEMENTS // len(points))), len(at) * len(points))
    return np.asarray(values / (2 * np.pi * widths[0] * widths[1]))


def check_neighbours(neighbours: int) -> None:
    if neighbours < 1:
        raise InputError("neighbours", expected="at least 1", got=str(neighbours), fix="use 10")
