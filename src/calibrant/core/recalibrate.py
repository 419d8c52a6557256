"""Cross-fitted recalibration: what the loss would be if only calibration were repaired."""

from dataclasses import replace
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.errors import InputError
from calibrant.core.isotonic import fit_isotonic
from calibrant.core.predictions import Predictions
from calibrant.core.temperature import find_temperature

By = Literal["temperature", "isotonic"]


def recalibrated(p: Predictions, by: By = "temperature", *, folds: int = 5) -> Predictions:
    """Every row recalibrated by a map fitted on the other folds, then smoothed towards uniform by 1 / (n + 1)."""
    check_folds(folds, p)
    fold = deal_folds(p, folds)
    probs = np.empty((p.n, p.k))
    for f in range(folds):
        inside, outside = p.take(fold == f), p.take(fold != f)
        q = _by_temperature(outside, inside) if by == "temperature" else _by_isotonic(outside, inside)
        share = 1 / (outside.effective + 1)
        probs[fold == f] = (1 - share) * q + share * inside.uniform()
    return Predictions(probs, p.labels, "probs", replace(p.extras, predicted=None))


def check_folds(folds: int, p: Predictions) -> None:
    """Refuse folds that would be empty."""
    n, what = (p.n, "rows") if p.clusters is None else (int(p.clusters.max()) + 1, "clusters")
    if n < 2:
        raise InputError("folds", expected=f"at least 2 {what} to deal", got=str(n), fix="give more rows")
    if not 2 <= folds <= n:
        raise InputError("folds", expected=f"2 to {n} (the {what})", got=str(folds), fix=f"use {min(5, n)}")


def deal_folds(p: Predictions, folds: int) -> Ints:
    """Fold of each row, dealt out along the sorted confidences: balanced, and blind to the order of rows.

    Ties are broken by the true class and a checksum of the row; digits that rounding could change are cut off. Rows of
    one cluster go together, in the place of their first.
    """
    checksum = np.empty(p.n)
    for rows, probs in p.prob_rows():
        checksum[rows] = (probs * np.sin(np.arange(1, p.k + 1))).sum(axis=1)
    keys = (p.labels, *(np.round(key, 8) for key in (checksum, p.true_prob, p.confidence)))
    return dealt(np.lexsort(keys), p.clusters, folds)


def dealt(order: Ints, clusters: Ints | None, folds: int) -> Ints:
    """The fold of each row when rows are dealt in this order, those of a cluster with the first of them.

    >>> dealt(np.array([3, 1, 0, 2]), np.array([0, 1, 0, 2]), 2)  # clusters 2, 1 and 0 in turn
    array([0, 1, 0, 0])
    """
    fold = np.empty(len(order), dtype=np.int64)
    if clusters is None:
        fold[order] = np.arange(len(order)) % folds
        return fold
    found, first = np.unique(clusters[order], return_index=True)
    of_cluster = np.empty(len(found), dtype=np.int64)
    of_cluster[np.argsort(first)] = np.arange(len(found)) % folds
    return np.asarray(of_cluster[clusters])


def _by_temperature(fit_on: Predictions, p: Predictions) -> Array:
    return p.tempered(find_temperature(fit_on).T).probs


def _by_isotonic(fit_on: Predictions, p: Predictions) -> Array:
    """One fit per class, rows renormalised (uniform where every class got 0); one fit of the score where it is one."""
    if p.shape != "classes":
        knots = fit_isotonic(fit_on.score, fit_on.hit.astype(np.float64), fit_on.weights)
        return p.with_confidence(np.clip(np.interp(p.score, *knots), 0.0, 1.0)).probs
    train, probs = fit_on.probs, p.probs.copy()
    for c in range(p.k):
        x, y = fit_isotonic(train[:, c], (fit_on.labels == c).astype(np.float64), fit_on.weights)
        probs[:, c] = np.interp(probs[:, c], x, y)
    total = probs.sum(axis=1, keepdims=True)
    return np.where(total > 0, probs / np.where(total > 0, total, 1.0), 1 / p.k)
