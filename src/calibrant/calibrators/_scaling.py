"""Ridges, and coordinates in which a fit with a ridge curves alike in all directions."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibrant.core.arrays import Array, Floats

SAMPLE = 2000  # rows that the scaling is made from
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
class _Apart:
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


def scaling(z: Floats, weight: Array, ridge: Ridge | None) -> Scaling:
    """From the curvature on a sample of rows (vector), or from the second moments of the logits (matrix)."""
    n, k = z.shape
    if weight.ndim == 1 and 2 * k > MOST_COUPLED:
        return _apart(z[np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64)].astype(np.float64), weight, ridge)
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
    diagonal = np.diag(moments) + 2 * ridge.diagonal
    return _Blocks(
        _inverse_root(moments + 2 * ridge.off_diagonal * np.eye(k)),
        1 / np.sqrt(diagonal + _lift(diagonal)),
        np.full(k, 1 / np.sqrt(1 / k + 2 * ridge.bias)),
        k * (k + 2),
    )


def _apart(sample: Array, weight: Array, ridge: Ridge | None) -> Scaling:
    """From the diagonal of the curvature alone."""
    q = _softmax(sample * weight)
    spread = q * (1 - q)
    curvature = np.concatenate([(spread * sample**2).mean(axis=0), spread.mean(axis=0)])
    if ridge is not None:
        curvature += 2 * np.repeat([ridge.diagonal, ridge.bias], len(weight))
    return _Apart(1 / np.sqrt(curvature + _lift(curvature)), len(curvature))


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
