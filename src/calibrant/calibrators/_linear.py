"""Fits of softmax(W z + b): a convex problem, solved by Newton where it is small and by L-BFGS where it is not."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from calibrant.calibrators._lbfgs import Stage, lbfgs
from calibrant.calibrators._newton import LARGEST, newton
from calibrant.calibrators._objective import CachedObjective, largest_entry, mean_nll
from calibrant.calibrators._scaling import Ridge, scaling
from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.curves import native
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Fit
from calibrant.core.parallel import one_blas_thread, pieces
from calibrant.core.predictions.constants import CHUNK_ELEMENTS, KEEP_ELEMENTS
from calibrant.core.text.number_format import name_classes

GRADIENT_ROUGH, GRADIENT_ENOUGH = 1.5e-6, 1e-6  # largest entry of the gradient of the mean objective
ITERATIONS = 500
ROUNDING = 1e-7  # relative, of values in float32
MOST_CLASSES = 3000  # of a matrix: 9 million weights, and twenty times as many numbers to find them
FAR = 1e3  # a weight or bias beyond this has run off


@dataclass(frozen=True)
class LinearFit:
    weight: Array  # (k,) or (k, k)
    bias: Array  # (k,)
    objective: float
    fit: Fit


def fit_linear(
    z: Floats,
    labels: Ints,
    shape: Literal["vector", "matrix"],
    *,
    start: float = 1.0,
    penalty: Ridge | None = None,
    iterations: int = ITERATIONS,
    begin: LinearFit | None = None,
    polish: bool = True,
    rows_weigh: Array | None = None,
) -> LinearFit:
    """Minimise mean NLL + penalty over weight and bias, from weight = start (times identity), bias = 0.

    A class without a row would be driven towards a probability of 0. The fit is made without it, and its logit moves
    like the mean of the others; the report names it. `polish=False` saves time where fits serve to compare strengths.
    """
    if shape == "matrix" and z.shape[1] > MOST_CLASSES:
        raise InputError(
            "full matrix of weights",
            expected=f"at most {MOST_CLASSES:,} classes, or the fit takes gigabytes and hours",
            got=f"{z.shape[1]:,}",
            fix="use svs, vector or temperature",
        )
    if rows_weigh is not None and (rows_weigh == 0).any():  # rows that count for nothing teach nothing
        counted = rows_weigh > 0
        z, labels, rows_weigh = z[counted], labels[counted], rows_weigh[counted]
    k = z.shape[1]
    weight, bias = np.full(k, start) if shape == "vector" else np.eye(k) * start, np.zeros(k)
    if begin is not None:
        weight, bias = begin.weight, begin.bias
    present = np.unique(labels)
    if len(present) == 1:
        words = f"converged; all labels are {name_classes(present)}: there is nothing to fit"
        return LinearFit(weight, bias, 0.0, Fit(diagnosis=words))
    with one_blas_thread():
        if len(present) == k:
            return _fit_linear(_FitRows(z, labels, rows_weigh), weight, bias, penalty, iterations, polish)
        rows = _FitRows(z[:, present], np.searchsorted(present, labels), rows_weigh)
        small = weight[present] if weight.ndim == 1 else weight[np.ix_(present, present)]
        return _with_absent(_fit_linear(rows, small, bias[present], penalty, iterations, polish), present, k)


def descend_linear(
    z: Floats,
    labels: Ints,
    shape: Literal["vector", "matrix"],
    *,
    steps: int,
    rate: float,
    rows_weigh: Array | None = None,
) -> LinearFit:
    """Plain gradient descent from the identity: a recipe of papers that stops early."""
    k = z.shape[1]
    weight, bias = np.ones(k) if shape == "vector" else np.eye(k), np.zeros(k)
    with one_blas_thread():
        for _ in range(steps):
            _, gw, gb = mean_nll(z, labels, weight, bias, rows_weigh=rows_weigh)
            weight, bias = weight - rate * gw, bias - rate * gb
        value, gw, gb = mean_nll(z, labels, weight, bias, rows_weigh=rows_weigh)
    largest = float(max(np.abs(gw).max(), np.abs(gb).max()))
    return LinearFit(weight, bias, value, Fit(False, f"stopped after {steps} steps of {rate:g}", largest, steps))


@dataclass(frozen=True, eq=False)
class _FitRows:
    """The logits, labels and weights that a fit learns from."""

    z: Floats
    labels: Ints
    weigh: Array | None


def _fit_linear(
    rows: _FitRows, weight: Array, bias: Array, penalty: Ridge | None, iterations: int, polish: bool
) -> LinearFit:
    """The fit where every class has a row, from this weight and bias."""
    whole = _Objective(rows, penalty)
    objective = CachedObjective(whole)
    w, b, steps = _solve(whole, objective, weight, bias, iterations, polish)
    report = _report(largest_entry(objective, w, b), steps, w, b)
    if penalty is None and _separates(rows.z, rows.labels, w, b):
        why = "separable: every row can be predicted right, so sharper is always better; stopped at a small gradient"
        report = Fit(False, why, report.gradient, steps)
    return LinearFit(w, b, objective(w, b)[0], report)


@dataclass(frozen=True, eq=False)
class _Objective:
    """Mean NLL + penalty, with gradients."""

    rows: _FitRows
    penalty: Ridge | None

    def __call__(self, w: Array, b: Array, rough: Floats | None = None) -> tuple[float, Array, Array]:
        z, precision = (self.rows.z, np.float64) if rough is None else (rough, np.float32)
        value, gw, gb = mean_nll(z, self.rows.labels, w, b, precision, self.rows.weigh)
        if self.penalty is None:
            return value, gw, gb
        extra, pw, pb = self.penalty(w, b)
        return value + extra, gw + pw, gb + pb


def _solve(
    whole: _Objective, objective: CachedObjective, weight: Array, bias: Array, iterations: int, polish: bool
) -> tuple[Array, Array, int]:
    """The best weight and bias, and the steps to them."""
    rows, penalty = whole.rows, whole.penalty
    z = rows.z
    k = z.shape[1]
    last = Stage(objective, GRADIENT_ENOUGH)
    if weight.ndim == 2 and k * (k + 1) <= LARGEST:
        ridge = (0.0, 0.0, 0.0) if penalty is None else (penalty.diagonal, penalty.off_diagonal, penalty.bias)
        w, b, steps = newton(objective, z, weight, bias, ridge, GRADIENT_ENOUGH, rows.weigh)
        if polish and largest_entry(objective, w, b) > GRADIENT_ENOUGH:  # far from the optimum its steps may fail
            return lbfgs((last,), scaling(z, w, penalty), w, b, iterations)
        return w, b, steps
    scale = scaling(z, weight, penalty)
    if weight.ndim == 1 and native.is_available():  # float64 costs no more than float32
        return lbfgs((last,), scale, weight, bias, iterations)
    short = z.astype(np.float32, copy=False) if z.size <= KEEP_ELEMENTS else z
    rough = CachedObjective(partial(whole, rough=short))  # cheap steps first: the end does not depend on them
    return lbfgs((Stage(rough, GRADIENT_ROUGH, ROUNDING), last), scale, weight, bias, iterations)


def _with_absent(fitted: LinearFit, present: Ints, k: int) -> LinearFit:
    """The fit of the classes that have rows, with the others added: their logits move like the mean of the rest.

    Of a matrix, let s be the mean by which the weight of a class on its own logit exceeds its weight on others. Class
    a gets s z_a, plus the mean of what the others get beyond s times their own logit.
    """
    absent = np.setdiff1d(np.arange(k), present)
    bias = np.full(k, fitted.bias.mean())
    bias[present] = fitted.bias
    if fitted.weight.ndim == 1:
        weight = np.full(k, fitted.weight.mean())
        weight[present] = fitted.weight
    else:
        m, diagonal = len(present), float(np.trace(fitted.weight))
        own = diagonal / m - (fitted.weight.sum() - diagonal) / (m * (m - 1))
        weight = np.zeros((k, k))
        weight[np.ix_(absent, present)] = fitted.weight.mean(axis=0) - own / m
        weight[np.ix_(present, present)] = fitted.weight
        weight[absent, absent] = own
    single = len(absent) == 1
    moves = "its logit moves" if single else "their logits move"
    who = f"{name_classes(absent)} {'is' if single else 'are'} not among the labels"
    report = replace(fitted.fit, diagnosis=f"{fitted.fit.diagnosis}; {who}: {moves} like the mean of the others")
    return LinearFit(weight, bias, fitted.objective, report)


def _separates(z: Floats, labels: Ints, w: Array, b: Array) -> bool:
    for rows in pieces(len(z), max(1, CHUNK_ELEMENTS // z.shape[1])):
        u = (z[rows] @ w.T if w.ndim == 2 else z[rows] * w) + b
        true = u[np.arange(len(u)), labels[rows]]
        u[np.arange(len(u)), labels[rows]] = -np.inf
        if not (true > u.max(axis=1)).all():
            return False
    return True


def _report(gradient: float, steps: int, w: Array, b: Array) -> Fit:
    if gradient < GRADIENT_ENOUGH:
        return Fit(True, "converged", gradient, steps)
    if max(np.abs(w).max(), np.abs(b).max()) > FAR:
        why = "stopped: some classes can be separated, so weights run off"
    else:
        why = f"stopped after {steps} steps, largest gradient entry {gradient:.1e}"
    return Fit(False, why, gradient, steps)
