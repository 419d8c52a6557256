"""Cross-fitted recalibration: what the loss would be if only calibration were repaired."""

from dataclasses import replace
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Integers, Ints
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.isotonic import fit_isotonic
from calibrant.core.statistics.temperature import find_temperature

By = Literal["temperature", "isotonic"]
FOLDS = 5


def recalibrate(p: Predictions, by: By = "temperature", *, folds: int = FOLDS) -> Predictions:
    """Every row recalibrated by a map fitted on the other folds, then smoothed towards uniform by 1 / (n + 1)."""
    check_folds(folds, p)
    fold = folds_by_confidence(p, folds)
    probs = np.empty((p.n, p.k))
    for f in range(folds):
        inside, outside = p.take(fold == f), p.take(fold != f)
        q = _by_temperature(outside, inside) if by == "temperature" else _by_isotonic(outside, inside)
        share = 1 / (outside.n_effective + 1)
        probs[fold == f] = (1 - share) * q + share * inside.uniform()
    return p.with_values(probs, "probs", replace(p.row_data, predicted=None))


def most_folds(p: Predictions) -> int:
    """Five folds; one for each row, or cluster of rows, where there are fewer."""
    return min(FOLDS, p.n if p.clusters is None else int(p.clusters.max()) + 1)


def check_folds(folds: int, p: Predictions) -> None:
    """Refuse folds that would be empty."""
    n, unit = (p.n, "rows") if p.clusters is None else (int(p.clusters.max()) + 1, "clusters")
    if n < 2:
        raise InputError("folds", expected=f"at least 2 {unit}", got=str(n), fix=f"give more {unit}")
    if not 2 <= folds <= n:
        raise InputError("folds", expected=f"2 to {n} (the {unit})", got=str(folds), fix=f"use {most_folds(p)}")


def random_folds(p: Predictions, folds: int, seed: int) -> Ints:
    """The fold of each row, at random; rows of one cluster share a fold.

    Not stratified by label: then the class counts of the held-out rows would be those of the fitting rows, and
    calibrators with a number for each class would look better than they are.
    """
    check_folds(folds, p)
    return assign_folds(np.random.default_rng(seed).permutation(p.n), p.clusters, folds)


def folds_by_confidence(p: Predictions, folds: int) -> Ints:
    """The fold of each row, in turn along the sorted confidences: balanced, and the same for every order of rows.

    Rows of equal confidence are shuffled, whatever their labels. So that the order of rows does not matter, they are
    sorted first, by their scores (without digits that rounding could change) and labels. Rows of one cluster share the
    fold of their first.
    """
    checksum = np.empty(p.n)
    for rows, probs in p.prob_rows():
        checksum[rows] = (probs * np.sin(np.arange(1, p.k + 1))).sum(axis=1)
    confidence = np.round(p.confidence, 8)
    order = np.lexsort((p.labels, np.round(checksum, 8), np.round(p.true_prob, 8), confidence))
    shuffled = np.random.default_rng(0).permutation(p.n)
    return assign_folds(order[np.lexsort((shuffled, confidence[order]))], p.clusters, folds)


def assign_folds(order: Ints, clusters: Integers | None, folds: int) -> Ints:
    """The fold of each row when rows are assigned in turn in this order, those of a cluster with the first of them.

    >>> assign_folds(np.array([3, 1, 0, 2]), np.array([0, 1, 0, 2]), 2)  # clusters 2, 1 and 0 in turn
    array([0, 1, 0, 0])
    """
    fold = np.empty(len(order), dtype=np.int64)
    if clusters is None:
        fold[order] = np.arange(len(order)) % folds
        return fold
    names, first = np.unique(clusters[order], return_index=True)
    fold_of_cluster = np.empty(len(names), dtype=np.int64)
    fold_of_cluster[np.argsort(first)] = np.arange(len(names)) % folds
    return np.asarray(fold_of_cluster[clusters])


def _by_temperature(fit_on: Predictions, p: Predictions) -> Array:
    return p.with_temperature(find_temperature(fit_on).T).probs


def _by_isotonic(fit_on: Predictions, p: Predictions) -> Array:
    """One fit per class, rows renormalised (uniform where every class got 0); one fit of the score where it is one."""
    if p.task != "multiclass":
        knots = fit_isotonic(fit_on.score, fit_on.outcome.astype(np.float64), fit_on.weights)
        return p.with_confidence(np.clip(np.interp(p.score, *knots), 0.0, 1.0)).probs
    train, probs = fit_on.probs, p.probs.copy()
    for c in range(p.k):
        x, y = fit_isotonic(train[:, c], (fit_on.labels == c).astype(np.float64), fit_on.weights)
        probs[:, c] = np.interp(probs[:, c], x, y)
    total = probs.sum(axis=1, keepdims=True)
    return np.where(total > 0, probs / np.where(total > 0, total, 1.0), 1 / p.k)
