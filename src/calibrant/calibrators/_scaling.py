"""Ridges, and coordinates in which a fit with a ridge curves alike in all directions."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.core.arrays import Array, Floats

SAMPLE, SAMPLE_OF_MATRIX = 1000, 2000  # rows that the scaling is made from
MOST_COUPLED = 4000  # numbers of a vector whose curvature is taken whole: its root costs their cube


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


class Scaling(Protocol):
    """Coordinates x with (weight, bias) = start + scaled x, in which the objective curves alike in all directions."""

    @property
    def size(self) -> int: ...

    def out_of(self, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]: ...

    def into(self, gw: Array, gb: Array) -> Array: ...


@dataclass(frozen=True)
class _CoupledScaling:
    """One factor (2k, 2k) for weight and bias of a vector."""

    factor: Array
    size: int

    def out_of(self, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
        k, step = len(bias), self.factor @ x
        return weight + step[:k], bias + step[k:]

    def into(self, gw: Array, gb: Array) -> Array:
        return np.asarray(self.factor.T @ np.concatenate([gw, gb]))


@dataclass(frozen=True)
class _SeparateScaling:
    """A factor for each number of a weight (k,) and a bias (k,), where there are too many to look at pairs."""

    factor: Array  # (2k,)
    size: int

    def out_of(self, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
        k = len(bias)
        step = self.factor * x
        return weight + step[:k], bias + step[k:]

    def into(self, gw: Array, gb: Array) -> Array:
        return np.asarray(self.factor * np.concatenate([gw, gb]))


@dataclass(frozen=True)
class _RowScaling:
    """One factor (k + 1, k + 1) for each row of (weight, bias) of a matrix."""

    factor: Array
    classes: int

    @property
    def size(self) -> int:
        return self.classes * (self.classes + 1)

    def out_of(self, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
        step = x.reshape(self.classes, -1) @ self.factor.T
        return weight + step[:, :-1], bias + step[:, -1]

    def into(self, gw: Array, gb: Array) -> Array:
        return np.asarray((np.concatenate([gw, gb[:, None]], axis=1) @ self.factor).ravel())


@dataclass(frozen=True)
class _Blocks:
    """Diagonal, bias and the rest of a matrix apart, because their ridges differ by orders of magnitude."""

    factor: Array  # (k, k) for every row of the rest
    diagonal: Array  # (k,)
    bias: Array  # (k,)

    @property
    def size(self) -> int:
        return len(self.bias) * (len(self.bias) + 2)

    def out_of(self, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
        k = len(bias)
        step = x[2 * k :].reshape(k, k) @ self.factor.T
        np.fill_diagonal(step, self.diagonal * x[:k])
        return weight + step, bias + self.bias * x[k : 2 * k]

    def into(self, gw: Array, gb: Array) -> Array:
        diagonal = np.diag(gw).copy()
        rest = gw - np.diag(diagonal)
        return np.concatenate([self.diagonal * diagonal, self.bias * gb, (rest @ self.factor).ravel()])


def scaling(z: Floats, weight: Array, ridge: Ridge | None) -> Scaling:
    """Build coordinates from the curvature on a sample of rows."""
    n, k = z.shape
    apart = weight.ndim == 1 and 2 * k > MOST_COUPLED
    rows = SAMPLE if apart else max(SAMPLE if weight.ndim == 1 else SAMPLE_OF_MATRIX, 2 * k)
    sample = z[np.linspace(0, n - 1, min(n, rows)).astype(np.int64)].astype(np.float64)
    if apart:
        return _apart(sample, weight, ridge)
    if weight.ndim == 2:
        return _of_matrix(sample, weight, ridge)
    curvature = _vector_curvature(sample, weight)
    if ridge is not None:
        np.fill_diagonal(curvature, np.diag(curvature) + 2 * np.repeat([ridge.diagonal, ridge.bias], k))
    return _CoupledScaling(_inverse_root(curvature), 2 * k)


def _of_matrix(sample: Array, weight: Array, ridge: Ridge | None) -> Scaling:
    """Scaling of a matrix: the row of class c curves by the mean of q_c (1 - q_c) x x', taken alike for all c."""
    s, k = sample.shape
    q = _softmax(sample @ weight.T)
    spread = q * (1 - q)
    x = sample if ridge is not None else np.concatenate([sample, np.ones((s, 1))], axis=1)
    moments = (x * spread.sum(axis=1, keepdims=True)).T @ x / (s * k)
    if ridge is None:
        return _RowScaling(_inverse_root(moments), k)
    diagonal = np.einsum("ik,ik->k", spread, sample**2) / s + 2 * ridge.diagonal
    bias = spread.mean(axis=0) + 2 * ridge.bias
    return _Blocks(
        _inverse_root(moments + 2 * ridge.off_diagonal * np.eye(k)),
        1 / np.sqrt(diagonal + _lift(diagonal)),
        1 / np.sqrt(bias + _lift(bias)),
    )


def _apart(sample: Array, weight: Array, ridge: Ridge | None) -> Scaling:
    """Scaling from the diagonal of the curvature alone."""
    q = _softmax(sample * weight)
    spread = q * (1 - q)
    curvature = np.concatenate([(spread * sample**2).mean(axis=0), spread.mean(axis=0)])
    if ridge is not None:
        curvature += 2 * np.repeat([ridge.diagonal, ridge.bias], len(weight))
    return _SeparateScaling(1 / np.sqrt(curvature + _lift(curvature)), len(curvature))


def _vector_curvature(sample: Array, weight: Array) -> Array:
    """Second derivatives of the mean NLL in (weight, bias), (2k, 2k)."""
    k = len(weight)
    q = _softmax(sample * weight)
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
    lift = _lift(diagonal)
    np.fill_diagonal(curvature, diagonal + lift)
    try:
        return np.asarray(np.linalg.inv(np.linalg.cholesky(curvature)).T)
    except np.linalg.LinAlgError:  # rounding, with logits of 1e4: the diagonal alone will do
        return np.diag(1 / np.sqrt(np.maximum(diagonal, 0) + lift))


def _lift(diagonal: Array) -> float:
    return max(float(diagonal.max()) * 1e-6, 1e-12)


def _softmax(u: Array) -> Array:
    e = np.exp(u - u.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))
