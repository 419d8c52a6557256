"""Fits of softmax(W z + b): a convex problem, solved by L-BFGS in coordinates where it is well scaled."""

import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np

from calibrant.calibrators._map import Fit
from calibrant.calibrators._newton import LARGEST, Objective, newton
from calibrant.core.arrays import Array, Floats, Ints, one_blas_thread, pieces, run_pieces
from calibrant.core.predictions import CHUNK_ELEMENTS, KEEP_ELEMENTS

GRADIENT_ROUGH, GRADIENT_ENOUGH = 5e-6, 1e-6  # largest entry of the gradient of the mean objective
ITERATIONS = 500
SAMPLE = 2000  # rows that the scaling is made from
Precision = type[np.floating[Any]]
TRIES = 6  # points of one line search in float32
FAR = 1e3  # a weight or bias beyond this has run off


@dataclass(frozen=True)
class Ridge:
    """Squares of the diagonal's distance from one, of the rest of the weight and of the bias, each with a strength."""

    diagonal: float
    off_diagonal: float
    bias: float

    def __call__(self, w: Array, b: Array) -> tuple[float, Array, Array]:
        """Value and gradients at a weight (k,) or (k, k) and a bias (k,)."""
        v = (w if w.ndim == 1 else np.diag(w)) - 1
        value, gw = self.diagonal * (v @ v) + self.bias * (b @ b), 2 * self.diagonal * v
        if w.ndim == 2:
            off = w - np.diag(np.diag(w))
            value, gw = value + self.off_diagonal * (off**2).sum(), 2 * self.off_diagonal * off + np.diag(gw)
        return float(value), gw, 2 * self.bias * b


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
) -> LinearFit:
    """Minimise mean NLL + penalty over weight and bias, from weight = start (times identity), bias = 0.

    Without a penalty, a class that never occurs would run off to minus infinity: it is left as it was, and said.
    `polish=False` saves time where a fit only serves to compare strengths.
    """
    with one_blas_thread():
        return _fit_linear(z, labels, shape, start, penalty, iterations, begin, polish)


def descend_linear(
    z: Floats, labels: Ints, shape: Literal["vector", "matrix"], *, steps: int, rate: float
) -> LinearFit:
    """Plain gradient descent from the identity: a recipe of papers that stops early."""
    k = z.shape[1]
    weight, bias = np.ones(k) if shape == "vector" else np.eye(k), np.zeros(k)
    with one_blas_thread():
        for _ in range(steps):
            _, gw, gb = _nll(z, labels, weight, bias)
            weight, bias = weight - rate * gw, bias - rate * gb
        value, gw, gb = _nll(z, labels, weight, bias)
    largest = float(max(np.abs(gw).max(), np.abs(gb).max()))
    return LinearFit(weight, bias, value, Fit(False, f"stopped after {steps} steps of {rate:g}", largest, steps))


def _fit_linear(
    z: Floats,
    labels: Ints,
    shape: Literal["vector", "matrix"],
    start: float,
    penalty: Ridge | None,
    iterations: int,
    begin: LinearFit | None,
    polish: bool,
) -> LinearFit:
    k = z.shape[1]
    weight = np.full(k, start) if shape == "vector" else np.eye(k) * start
    bias = np.zeros(k)
    if begin is not None:
        weight, bias = begin.weight, begin.bias
    absent = np.setdiff1d(np.arange(k), labels) if penalty is None else np.empty(0, dtype=np.int64)

    def held(w: Array, b: Array) -> tuple[Array, Array]:
        w, b = w.copy(), b.copy()
        w[absent], b[absent] = weight[absent], bias[absent]
        return w, b

    def evaluated(w: Array, b: Array, rough: Floats | None = None) -> tuple[float, Array, Array]:
        w, b = held(w, b)
        value, gw, gb = _nll(z if rough is None else rough, labels, w, b, np.float64 if rough is None else np.float32)
        if penalty is not None:
            extra, pw, pb = penalty(w, b)
            value, gw, gb = value + extra, gw + pw, gb + pb
        gw[absent], gb[absent] = 0.0, 0.0
        return value, gw, gb

    objective = _Remembered(evaluated)
    if shape == "matrix" and k * (k + 1) <= LARGEST and not len(absent):
        ridge = (0.0, 0.0, 0.0) if penalty is None else (penalty.diagonal, penalty.off_diagonal, penalty.bias)
        w, b, steps = newton(objective, z, weight, bias, ridge, GRADIENT_ENOUGH)
        if polish and _largest(objective, w, b) > GRADIENT_ENOUGH:  # far from the optimum its steps may fail
            w, b, steps = _lbfgs(objective, _scaling(z, w, penalty), w, b, iterations, GRADIENT_ENOUGH)
    else:
        scale = _scaling(z, weight, penalty)
        short = z.astype(np.float32, copy=False) if z.size <= KEEP_ELEMENTS else z
        rough = _Remembered(partial(evaluated, rough=short))  # cheap steps first: the end does not depend on them
        w, b, first = _lbfgs(rough, scale, weight, bias, iterations, GRADIENT_ROUGH, TRIES)
        w, b, steps = _lbfgs(objective, scale, w, b, iterations, GRADIENT_ENOUGH)
        steps += first
    w, b = held(w, b)
    report = _report(_largest(objective, w, b), steps, absent, w, b)
    if penalty is None and _separates(z, labels, w, b):
        why = "separable: every row can be predicted right, so sharper is always better; stopped at a small gradient"
        report = Fit(False, why, report.gradient, steps)
    return LinearFit(w, b, objective(w, b)[0], report)


class _Remembered:
    """An objective that is not computed again where it was computed last."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.at: tuple[Array, Array] | None = None

    def __call__(self, w: Array, b: Array) -> tuple[float, Array, Array]:
        if self.at is None or not (np.array_equal(w, self.at[0]) and np.array_equal(b, self.at[1])):
            self.at, self.found = (w.copy(), b.copy()), self.objective(w, b)
        return self.found


def _separates(z: Floats, labels: Ints, w: Array, b: Array) -> bool:
    for rows in pieces(len(z), max(1, CHUNK_ELEMENTS // z.shape[1])):
        u = (z[rows] @ w.T if w.ndim == 2 else z[rows] * w) + b
        true = u[np.arange(len(u)), labels[rows]]
        u[np.arange(len(u)), labels[rows]] = -np.inf
        if not (true > u.max(axis=1)).all():
            return False
    return True


def _largest(objective: Objective, w: Array, b: Array) -> float:
    _, gw, gb = objective(w, b)
    return float(max(np.abs(gw).max(), np.abs(gb).max()))


def _lbfgs(
    objective: Objective,
    scale: "_Scaling",
    weight: Array,
    bias: Array,
    iterations: int,
    enough: float,
    tries: float = np.inf,
) -> tuple[Array, Array, int]:
    """L-BFGS in scaled coordinates; stops when the gradient in plain coordinates is small."""
    from scipy.optimize import minimize

    largest, tried, reached, steps = _largest(objective, weight, bias), 0, np.zeros(scale.size), 0
    if largest < enough:
        return weight, bias, 0

    def scaled(x: Array) -> tuple[float, Array]:
        nonlocal largest, tried
        tried += 1
        if tried > tries:
            raise _StuckError
        value, gw, gb = objective(*scale.out_of(x, weight, bias))
        largest = max(np.abs(gw).max(), np.abs(gb).max())
        return value, scale.into(gw, gb)

    def stepped(x: Array) -> None:
        nonlocal tried, reached, steps
        tried, reached, steps = 0, x.copy(), steps + 1
        if largest < enough:
            raise StopIteration

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "maxcor": 10, "ftol": 0.0, "gtol": 1e-12}
    with suppress(_StuckError):
        minimize(scaled, reached, jac=True, method="L-BFGS-B", options=options, callback=stepped)
    return *scale.out_of(reached, weight, bias), steps


class _StuckError(Exception):
    """A line search that finds no better point: rounding hides what is left to gain."""


def _report(gradient: float, steps: int, absent: Ints, w: Array, b: Array) -> Fit:
    left = f"; classes {absent.tolist()[:5]} never occur and were left alone" if len(absent) else ""
    if gradient < GRADIENT_ENOUGH:
        return Fit(True, f"converged{left}", gradient, steps)
    if max(np.abs(w).max(), np.abs(b).max()) > FAR:
        why = "stopped: some classes can be separated, so weights run off"
    else:
        why = f"stopped after {steps} steps, largest gradient entry {gradient:.1e}"
    return Fit(False, f"{why}{left}", gradient, steps)


def _nll(
    z: Floats, labels: Ints, weight: Array, bias: Array, precision: Precision = np.float64
) -> tuple[float, Array, Array]:
    """Mean NLL and its gradients, in chunks of rows on two threads."""
    n, k = z.shape
    lock = threading.Lock()
    total, gw, gb = [0.0], np.zeros_like(weight), np.zeros(k)
    weight_here, bias_here = weight.astype(precision), bias.astype(precision)

    def work(rows: slice) -> None:
        x = z[rows].astype(precision, copy=False)  # (b, k)
        u = x @ weight_here.T if weight.ndim == 2 else x * weight_here
        u += bias_here
        u -= u.max(axis=1, keepdims=True)
        at = np.arange(len(u)), labels[rows]
        true = u[at]
        e = np.exp(u, out=u)
        norm = e.sum(axis=1)
        e /= norm[:, None]
        e[at] -= 1.0
        part = e.T @ x if weight.ndim == 2 else np.einsum("ik,ik->k", e, x)
        with lock:
            total[0] += float((np.log(norm) - true).sum(dtype=np.float64))
            np.add(gw, part, out=gw)
            np.add(gb, e.sum(axis=0), out=gb)

    run_pieces(work, pieces(n, max(1, CHUNK_ELEMENTS // k)), z.size)
    return total[0] / n, gw / n, gb / n


class _Scaling(Protocol):
    """Coordinates x with (weight, bias) = start + scaled x, in which the objective curves alike in all directions."""

    @property
    def size(self) -> int: ...

    def out_of(self, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]: ...

    def into(self, gw: Array, gb: Array) -> Array: ...


@dataclass(frozen=True)
class _Whole:
    """One factor for weight and bias of a vector (2k, 2k), or for each row of (weight, bias) of a matrix (k+1, k+1)."""

    factor: Array
    size: int

    def out_of(self, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
        k = len(bias)
        if weight.ndim == 1:
            step = self.factor @ x
            return weight + step[:k], bias + step[k:]
        step = x.reshape(k, k + 1) @ self.factor.T
        return weight + step[:, :k], bias + step[:, k]

    def into(self, gw: Array, gb: Array) -> Array:
        if gw.ndim == 1:
            return np.asarray(self.factor.T @ np.concatenate([gw, gb]))
        return np.asarray((np.concatenate([gw, gb[:, None]], axis=1) @ self.factor).ravel())


@dataclass(frozen=True)
class _Blocks:
    """Diagonal, bias and the rest of a matrix apart, because their ridges differ by orders of magnitude."""

    factor: Array  # (k, k) for every row of the rest
    diagonal: Array  # (k,)
    bias: Array  # (k,)
    size: int

    def out_of(self, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
        k = len(bias)
        step = x[2 * k :].reshape(k, k) @ self.factor.T
        np.fill_diagonal(step, self.diagonal * x[:k])
        return weight + step, bias + self.bias * x[k : 2 * k]

    def into(self, gw: Array, gb: Array) -> Array:
        diagonal = np.diag(gw).copy()
        rest = gw - np.diag(diagonal)
        return np.concatenate([self.diagonal * diagonal, self.bias * gb, (rest @ self.factor).ravel()])


def _scaling(z: Floats, weight: Array, ridge: Ridge | None) -> _Scaling:
    """From the curvature on a sample of rows (vector), or from the second moments of the logits (matrix)."""
    n, k = z.shape
    sample = z[np.linspace(0, n - 1, min(n, max(SAMPLE, 2 * k))).astype(np.int64)].astype(np.float64)
    if weight.ndim == 1:
        curvature = _vector_curvature(sample, weight)
        if ridge is not None:
            np.fill_diagonal(curvature, np.diag(curvature) + 2 * np.repeat([ridge.diagonal, ridge.bias], k))
        return _Whole(_inverse_root(curvature), 2 * k)
    if ridge is None:
        a = np.concatenate([sample, np.ones((len(sample), 1))], axis=1)
        return _Whole(_inverse_root(a.T @ a / (len(sample) * k)), k * (k + 1))
    moments = sample.T @ sample / (len(sample) * k)
    return _Blocks(
        _inverse_root(moments + 2 * ridge.off_diagonal * np.eye(k)),
        1 / np.sqrt(np.diag(moments) + 2 * ridge.diagonal),
        np.full(k, 1 / np.sqrt(1 / k + 2 * ridge.bias)),
        k * (k + 2),
    )


def _vector_curvature(sample: Array, weight: Array) -> Array:
    """Second derivatives of the mean NLL in (weight, bias), (2k, 2k)."""
    k = len(weight)
    u = sample * weight
    q = np.exp(u - u.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    a = np.concatenate([q * sample, q], axis=1)  # (s, 2k)
    curvature = -a.T @ a
    first, second = np.arange(k), np.arange(k, 2 * k)
    cross = a[:, :k].sum(axis=0)
    curvature[first, first] += (q * sample**2).sum(axis=0)
    curvature[second, second] += q.sum(axis=0)
    curvature[first, second] += cross
    curvature[second, first] += cross
    curvature /= len(sample)
    return np.asarray(curvature)


def _inverse_root(curvature: Array) -> Array:
    """F with F F' = the inverse of the curvature, which is lifted a little where nothing curves, in place."""
    diagonal = np.diag(curvature).copy()
    lift = max(float(diagonal.max()) * 1e-6, 1e-12)
    np.fill_diagonal(curvature, diagonal + lift)
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(curvature)).T)
    except np.linalg.LinAlgError:  # rounding, with logits of 1e4: the diagonal alone will do
        return np.diag(1 / np.sqrt(np.maximum(diagonal, 0) + lift))
