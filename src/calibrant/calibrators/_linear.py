"""Fits of softmax(W z + b): a convex problem, solved by Newton where it is small and by L-BFGS where it is not."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from calibrant.calibrators._lbfgs import lbfgs
from calibrant.calibrators._newton import LARGEST, newton
from calibrant.calibrators._objective import Remembered, largest_entry, mean_nll
from calibrant.calibrators._scaling import Ridge, scaling
from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.map import Fit
from calibrant.core.parallel import one_blas_thread, pieces
from calibrant.core.views import CHUNK_ELEMENTS, KEEP_ELEMENTS

GRADIENT_ROUGH, GRADIENT_ENOUGH = 5e-6, 1e-6  # largest entry of the gradient of the mean objective
ITERATIONS = 500
TRIES = 6  # points of one line search in float32
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

    Without a penalty, a class that never occurs would run off to minus infinity: it is left as it was, and said.
    `polish=False` saves time where a fit only serves to compare strengths.
    """
    if shape == "matrix" and z.shape[1] > MOST_CLASSES:
        raise InputError(
            "full matrix of weights",
            expected=f"at most {MOST_CLASSES:,} classes, or the fit takes gigabytes and hours",
            got=f"{z.shape[1]:,}",
            fix="use svs, vector or temperature",
        )
    if rows_weigh is not None and (rows_weigh == 0).any():  # rows that count for nothing teach nothing
        some = rows_weigh > 0
        z, labels, rows_weigh = z[some], labels[some], rows_weigh[some]
    with one_blas_thread():
        return _fit_linear(_Rows(z, labels, rows_weigh), shape, start, penalty, iterations, begin, polish)


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
class _Rows:
    """What a fit learns from."""

    z: Floats
    labels: Ints
    weigh: Array | None


def _fit_linear(
    rows: _Rows,
    shape: Literal["vector", "matrix"],
    start: float,
    penalty: Ridge | None,
    iterations: int,
    begin: LinearFit | None,
    polish: bool,
) -> LinearFit:
    k = rows.z.shape[1]
    weight, bias = np.full(k, start) if shape == "vector" else np.eye(k) * start, np.zeros(k)
    if begin is not None:
        weight, bias = begin.weight, begin.bias
    absent = np.setdiff1d(np.arange(k), rows.labels) if penalty is None else np.empty(0, dtype=np.int64)
    if shape == "vector" and 2 * len(absent) > k:
        w, b, steps = _solve_present(rows, weight, bias, absent, iterations)
    else:
        w, b, steps = _solve(rows, weight, bias, penalty, absent, iterations, polish)
    objective = Remembered(_Held(rows, weight, bias, penalty, absent))
    report = _report(largest_entry(objective, w, b), steps, absent, w, b)
    if penalty is None and _separates(rows.z, rows.labels, w, b):
        why = "separable: every row can be predicted right, so sharper is always better; stopped at a small gradient"
        report = Fit(False, why, report.gradient, steps)
    return LinearFit(w, b, objective(w, b)[0], report)


@dataclass(frozen=True, eq=False)
class _Held:
    """Mean NLL + penalty, with the classes that never occur held where they began."""

    rows: _Rows
    weight: Array
    bias: Array
    penalty: Ridge | None
    absent: Ints

    def held(self, w: Array, b: Array) -> tuple[Array, Array]:
        w, b = w.copy(), b.copy()
        w[self.absent], b[self.absent] = self.weight[self.absent], self.bias[self.absent]
        return w, b

    def __call__(self, w: Array, b: Array, rough: Floats | None = None) -> tuple[float, Array, Array]:
        w, b = self.held(w, b)
        z, precision = (self.rows.z, np.float64) if rough is None else (rough, np.float32)
        value, gw, gb = mean_nll(z, self.rows.labels, w, b, precision, self.rows.weigh)
        if self.penalty is not None:
            extra, pw, pb = self.penalty(w, b)
            value, gw, gb = value + extra, gw + pw, gb + pb
        gw[self.absent], gb[self.absent] = 0.0, 0.0
        return value, gw, gb


def _solve(
    rows: _Rows,
    weight: Array,
    bias: Array,
    penalty: Ridge | None,
    absent: Ints,
    iterations: int,
    polish: bool,
) -> tuple[Array, Array, int]:
    """The best weight and bias, and the steps to them."""
    z, whole = rows.z, _Held(rows, weight, bias, penalty, absent)
    k = z.shape[1]
    objective = Remembered(whole)
    if weight.ndim == 2 and k * (k + 1) <= LARGEST and not len(absent):
        ridge = (0.0, 0.0, 0.0) if penalty is None else (penalty.diagonal, penalty.off_diagonal, penalty.bias)
        w, b, steps = newton(objective, z, weight, bias, ridge, GRADIENT_ENOUGH, rows.weigh)
        if polish and largest_entry(objective, w, b) > GRADIENT_ENOUGH:  # far from the optimum its steps may fail
            w, b, steps = lbfgs(objective, scaling(z, w, penalty), w, b, iterations, GRADIENT_ENOUGH)
    else:
        scale = scaling(z, weight, penalty)
        short = z.astype(np.float32, copy=False) if z.size <= KEEP_ELEMENTS else z
        rough = Remembered(partial(whole, rough=short))  # cheap steps first: the end does not depend on them
        w, b, first = lbfgs(rough, scale, weight, bias, iterations, GRADIENT_ROUGH, TRIES)
        w, b, steps = lbfgs(objective, scale, w, b, iterations, GRADIENT_ENOUGH)
        steps += first
    return *whole.held(w, b), steps


def _solve_present(rows: _Rows, weight: Array, bias: Array, absent: Ints, iterations: int) -> tuple[Array, Array, int]:
    """The same for a vector where most classes never occur: held together, they are one class more."""
    present = np.setdiff1d(np.arange(len(bias)), absent)
    u = rows.z[:, absent] * weight[absent] + bias[absent]
    top = u.max(axis=1, keepdims=True)
    others = top + np.log(np.exp(u - top).sum(axis=1, keepdims=True))
    w, b = weight.copy(), bias.copy()
    few = _Rows(np.concatenate([rows.z[:, present], others], axis=1), np.searchsorted(present, rows.labels), rows.weigh)
    begin = np.append(weight[present], 1.0), np.append(bias[present], 0.0)
    found, offset, steps = _solve(few, *begin, None, np.array([len(present)]), iterations, True)
    w[present], b[present] = found[:-1], offset[:-1]
    return w, b, steps


def _separates(z: Floats, labels: Ints, w: Array, b: Array) -> bool:
    for rows in pieces(len(z), max(1, CHUNK_ELEMENTS // z.shape[1])):
        u = (z[rows] @ w.T if w.ndim == 2 else z[rows] * w) + b
        true = u[np.arange(len(u)), labels[rows]]
        u[np.arange(len(u)), labels[rows]] = -np.inf
        if not (true > u.max(axis=1)).all():
            return False
    return True


def _report(gradient: float, steps: int, absent: Ints, w: Array, b: Array) -> Fit:
    left = f"; classes {absent.tolist()[:5]} never occur and were left alone" if len(absent) else ""
    if gradient < GRADIENT_ENOUGH:
        return Fit(True, f"converged{left}", gradient, steps)
    if max(np.abs(w).max(), np.abs(b).max()) > FAR:
        why = "stopped: some classes can be separated, so weights run off"
    else:
        why = f"stopped after {steps} steps, largest gradient entry {gradient:.1e}"
    return Fit(False, f"{why}{left}", gradient, steps)
