"""Cross-fitting: every row calibrated by a map that was fitted without it."""

from collections.abc import Callable

import numpy as np

from calibrant.core.arrays import Ints
from calibrant.core.maps.map import Map, scatter_predictions
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.cross_fit import most_folds, random_folds
from calibrant.repairing.chain import fit_chain, parse_chain


def cross_fit(p: Predictions, calibrator: str, *, folds: int | None = None, seed: int = 0) -> Predictions:
    """Calibrate every row by a map fitted on the other folds: random ones, with the rows of a cluster in one fold.

    Five folds, or one for each row (or cluster) where there are fewer.
    """
    chain = parse_chain(calibrator)
    return calibrate_folds(p, choose_folds(p, folds, seed), lambda rows: fit_chain(rows, chain))


def choose_folds(p: Predictions, folds: int | None, seed: int) -> Ints:
    """The fold of each row, at random; rows of one cluster share a fold."""
    return random_folds(p, max(2, most_folds(p)) if folds is None else folds, seed)


def calibrate_folds(p: Predictions, fold: Ints, fit: Callable[[Predictions], Map]) -> Predictions:
    """Calibrate the rows of each fold by the map that `fit` learns on all others."""
    members = [np.flatnonzero(fold == f) for f in range(int(fold.max()) + 1)]
    return scatter_predictions(
        p, [(rows, fit(p.take(fold != f)).apply(p.take(rows))) for f, rows in enumerate(members)]
    )
