"""The mean NLL of softmax(W z + b) with its gradients, in chunks of rows, and an objective that remembers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.curves import native
from calibrant.core.parallel import pieces, run_pieces
from calibrant.core.predictions.constants import CHUNK_ELEMENTS

SHARES = 8  # sums of their own, added in order: so the number of threads changes no digit

Precision = type[np.floating[Any]]
Objective = Callable[[Array, Array], tuple[float, Array, Array]]  # (weight, bias) -> value and both gradients


def mean_nll(
    z: Floats,
    labels: Ints,
    weight: Array,
    bias: Array,
    precision: Precision = np.float64,
    rows_weigh: Array | None = None,
) -> tuple[float, Array, Array]:
    """Mean NLL and its gradients, by the weights of rows where they have any, in chunks of rows spread over threads."""
    if native.is_available() and z.dtype in native.TYPES and weight.ndim == 1:
        return _mean_nll_of_vector(z, labels, weight, bias, rows_weigh)
    n, k = z.shape
    whole = n if rows_weigh is None else float(rows_weigh.sum())
    compiled = native.is_available()
    chunks = pieces(n, max(1, (2 if compiled else 1) * CHUNK_ELEMENTS // k))  # fewer calls, where one does more
    size = math.ceil(len(chunks) / SHARES)
    shares = pieces(len(chunks), size)
    total, gw, gb = np.zeros(len(shares)), np.zeros((len(shares), *weight.shape)), np.zeros((len(shares), k))
    weight_here, bias_here = weight.astype(precision), bias.astype(precision)

    def work(share: slice) -> None:
        i = share.start // size
        for rows in chunks[share]:
            x = z[rows].astype(precision, copy=False)  # (b, k)
            u = x @ weight_here.T if weight.ndim == 2 else x * weight_here
            u += bias_here
            if compiled:
                total[i] += native.residuals(u, labels[rows], None if rows_weigh is None else rows_weigh[rows])
                gw[i] += u.T @ x
                gb[i] += np.ones(len(u), dtype=precision) @ u
                continue
            u -= u.max(axis=1, keepdims=True)
            at = np.arange(len(u)), labels[rows]
            true = u[at]
            e = np.exp(u, out=u)
            norm = e.sum(axis=1)
            e /= norm[:, None]
            e[at] -= 1.0
            losses = np.log(norm) - true
            if rows_weigh is None:
                total[i] += losses.sum(dtype=np.float64)
            else:
                w = rows_weigh[rows]
                total[i] += w @ losses.astype(np.float64)
                e *= w[:, None].astype(precision)
            gw[i] += e.T @ x if weight.ndim == 2 else np.einsum("ik,ik->k", e, x)
            gb[i] += e.sum(axis=0)

    run_pieces(work, shares, z.size)
    return float(total.sum()) / whole, gw.sum(axis=0) / whole, gb.sum(axis=0) / whole


def _mean_nll_of_vector(
    z: Floats, labels: Ints, weight: Array, bias: Array, rows_weigh: Array | None
) -> tuple[float, Array, Array]:
    """Mean NLL and gradients for one weight per class, in one compiled pass, in float64."""
    n, k = z.shape
    parts = native.shares(z)
    total, gradients = np.zeros(len(parts)), np.zeros((len(parts), 2, k))

    def work(rows: slice) -> None:
        i = rows.start // parts[0].stop
        weigh = None if rows_weigh is None else rows_weigh[rows]
        total[i], gradients[i, 0], gradients[i, 1] = native.vector_sums(z[rows], labels[rows], weigh, weight, bias)

    run_pieces(work, parts, z.size)
    whole = n if rows_weigh is None else float(rows_weigh.sum())
    gw, gb = gradients.sum(axis=0) / whole
    return float(total.sum()) / whole, gw, gb


class CachedObjective:
    """An objective that is not computed again where it was computed last."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.point: tuple[Array, Array] | None = None

    def __call__(self, w: Array, b: Array) -> tuple[float, Array, Array]:
        if self.point is None or not (np.array_equal(w, self.point[0]) and np.array_equal(b, self.point[1])):
            self.point, self.value = (w.copy(), b.copy()), self.objective(w, b)
        return self.value


def largest_entry(objective: Objective, w: Array, b: Array) -> float:
    """The largest absolute entry of both gradients at a point."""
    _, gw, gb = objective(w, b)
    return float(max(np.abs(gw).max(), np.abs(gb).max()))
