"""The temperature that minimises the negative log-likelihood, exactly, with a proof or a diagnosis."""

import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.curves import native
from calibrant.core.parallel import one_blas_thread, pieces, run_pieces
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import CHUNK_ELEMENTS, KEEP_ELEMENTS, PROBABILITY_FLOOR

Diagnosis = Literal["converged", "separable", "anti-informative", "constant scores"]

NO_OPTIMUM = {"separable": 0.01, "anti-informative": 100.0, "constant scores": 1.0}  # T when there is none
ROUGH_STEP, SMALL_STEP = 4e-3, 1e-5  # in ln T; the error after a Newton step is about its square
SAMPLE, SAMPLE_STEP = 1000, 1e-2  # rows, and ln T
STRIDE = 2.0  # the longest step in ln T: far out, curvature says little
STEPS = 100
NOWHERE = 1e25  # so far below the others, in float32 too, an option that is not there has no part at any T
FLAT = 1e-30  # logits of a row that differ by less say nothing


@dataclass(frozen=True)
class Temperature:
    """T, how sure it is, and why to believe it.

    `gradient` bounds |d NLL / d ln T| at T, `stderr` is the standard error of T: from the curvature, or where rows come
    in clusters, from the spread of the gradients of clusters (the infinitesimal jackknife, times G / (G - 1) for G
    clusters), which is what resampling whole clusters gives. Diagnoses other than
    "converged" name why no finite optimum exists; T is then the end of 0.01 .. 100 that the likelihood points to.
    """

    T: float
    stderr: float
    gradient: float
    diagnosis: Diagnosis


def find_temperature(p: Predictions) -> Temperature:
    """Safeguarded Newton in ln T on the convex objective, from logits, with float64 sums.

    >>> z = np.array([[2.0, 0.0]] * 4)
    >>> fit = find_temperature(Predictions.from_logits(z, [0, 0, 0, 1]))  # right 3 times in 4: z / T = ln 3
    >>> round(fit.T, 6), fit.diagnosis
    (1.820478, 'converged')
    """
    if p.weights is not None and (p.weights == 0).any():
        p = p.take(p.weights > 0)
    scores = _scores_of(p)
    diagnosis = scores.diagnosis()
    if diagnosis != "converged":
        return Temperature(NO_OPTIMUM[diagnosis], np.inf, float("nan"), diagnosis)
    near = 0.0
    if p.n > 4 * SAMPLE:  # cheap steps first, on a few rows and in float32: the end does not depend on them
        few = _scores_of(p.take(np.linspace(0, p.n - 1, SAMPLE).astype(np.int64)))
        near = _newton(few, near, np.float32, SAMPLE_STEP)[0] if few.diagnosis() == "converged" else near
    near = _newton(scores, near, np.float32, ROUGH_STEP)[0]
    s, step, first, variance = _newton(scores, near, np.float64, SMALL_STEP)
    T = float(np.exp(-s))
    # A variable of range R has |third cumulant| <= R variance, which bounds the gradient after the last small step.
    reach = scores.reach / T
    with np.errstate(over="ignore"):  # of logits hundreds apart: the bound says nothing
        gradient = step**2 / 2 * (abs(first) + (3 + reach) * variance) * np.exp(min(reach * abs(step), 700.0))
    curvature = first + variance
    if curvature <= 0:
        stderr = np.inf
    elif p.clusters is None:
        stderr = float(T / np.sqrt(p.effective * curvature))
    else:
        stderr = T * _cluster_error(scores.gradients(s), p) / curvature
    return Temperature(T, stderr, min(float(gradient), sys.float_info.max), diagnosis)


def _cluster_error(gradients: Floats, p: Predictions) -> float:
    """The standard error of the mean gradient when clusters, not rows, are drawn."""
    w = np.ones(p.n) if p.weights is None else p.weights
    sums = np.bincount(p.clusters, w * gradients)  # type: ignore[arg-type]
    members = np.bincount(p.clusters, w)[: len(sums)] > 0  # type: ignore[arg-type]
    count = int(members.sum())
    if count < 2:
        return np.inf
    return float(np.sqrt(count / (count - 1) * (sums**2).sum()) / w.sum())


def descend(p: Predictions, *, steps: int, rate: float) -> tuple[float, float]:
    """T after plain gradient descent from 1, and the size of d NLL / d T there: a recipe of papers that stops early."""
    T, scores = 1.0, _scores_of(p)
    for _ in range(steps):
        T = max(T + rate * scores.derivatives(-float(np.log(T)), np.float64)[0] / T, 1e-2)
    return T, abs(scores.derivatives(-float(np.log(T)), np.float64)[0] / T)


def _scores_of(p: Predictions) -> "_Scores | _Margins":
    return _Margins(p) if p.k == 2 and p.row_data.exists is None else _Scores(p)


class _Scores:
    """Logits with the largest of each row subtracted, and what they say about the likelihood at a temperature."""

    def __init__(self, p: Predictions) -> None:
        self.z, self.labels, self.weights, self.exists = p.logits, p.labels, p.weights, p.row_data.exists
        self.n, self.k = self.z.shape
        self.total = self.n if self.weights is None else float(self.weights.sum())
        if self.exists is not None:
            largest = p.logits.max(axis=1, keepdims=True)
            self.z = np.where(self.exists, p.logits, largest - p.logits.dtype.type(NOWHERE))
        compiled = native.is_available() and self.z.dtype in native.TYPES
        self.parts = native.shares(self.n) if compiled else pieces(self.n, max(1, CHUNK_ELEMENTS // self.k))
        self.top = np.empty(self.n, dtype=np.float64 if compiled else self.z.dtype)
        self.true = np.empty(self.n)  # logit of the label, minus the largest
        keep = self.z.size <= KEEP_ELEMENTS and not native.is_available()
        self.shifted = np.empty((self.n, self.k), dtype=np.float32) if keep else None
        sums = np.empty((len(self.parts), 2))  # of mean minus true logit, and the widest row

        def work(rows: slice) -> None:
            z = self.z[rows]
            if compiled and self.exists is None:
                weights = None if self.weights is None else self.weights[rows]
                levels = native.levels(z, self.labels[rows], weights, self.top[rows], self.true[rows])
                sums[rows.start // self.parts[0].stop] = levels
                return
            top, bottom, mean = self._levels(z, rows)
            true = z[np.arange(len(z)), self.labels[rows]]
            self.top[rows], self.true[rows] = top, true.astype(np.float64) - top
            away = self._sum(mean - self.true[rows], rows)
            sums[rows.start // self.parts[0].stop] = away, np.ptp([top - bottom, 0 * top])
            if self.shifted is not None:
                np.subtract(z, top[:, None], out=self.shifted[rows], casting="same_kind")

        with one_blas_thread():
            run_pieces(work, self.parts, self.z.size)
        self.away = float(sums[:, 0].sum())
        self.reach = float(sums[:, 1].max())
        self.wide_top = self.top.astype(np.float64, copy=False)

    def _levels(self, z: Floats, rows: slice) -> tuple[Floats, Floats, Floats]:
        """Of each row the largest and smallest logit, and the mean counted from the largest, of options it has."""
        top, ones = z.max(axis=1), np.ones(self.k, dtype=z.dtype)
        if self.exists is None:
            return top, z.min(axis=1), (z - top[:, None]) @ ones / self.k
        there = self.exists[rows]
        held = np.where(there, z, top[:, None])
        return top, held.min(axis=1), (held - top[:, None]) @ ones / there.sum(axis=1)

    def _sum(self, values: Floats, rows: slice) -> float:
        if self.weights is None:
            return float(values.sum(dtype=np.float64))
        return float(self.weights[rows] @ values.astype(np.float64))

    def diagnosis(self) -> Diagnosis:
        """Whether a finite optimum exists.

        The NLL is convex in 1 / T. It falls for ever if every label has the largest logit of its row; it rises from
        1 / T = 0 on if labels have, on average, no more than the mean logit of their row. In all other cases there is
        one optimum.
        """
        if self.reach < FLAT:
            return "constant scores"
        if (self.true >= 0).all():
            return "separable"
        return "anti-informative" if self.away >= 0 else "converged"

    def derivatives(self, s: float, precision: type[np.floating[Any]]) -> tuple[float, float]:
        """First derivative of the mean NLL by s = ln(1 / T), and the mean variance of the scaled logits.

        Their sum is the second derivative.
        """
        beta = precision(np.exp(s))
        sums = np.empty((len(self.parts), 2))
        ones = np.ones(self.k, dtype=precision)
        compiled = native.is_available()

        def work(rows: slice) -> None:
            if compiled:  # float64 costs no more than float32
                about = self.wide_top[rows], self.true[rows], None if self.weights is None else self.weights[rows]
                sums[rows.start // self.parts[0].stop] = native.temperature_sums(self.z[rows], *about, float(np.exp(s)))
                return
            if precision is np.float32 and self.shifted is not None:
                z = self.shifted[rows] * beta
            else:
                z = np.subtract(self.z[rows], self.top[rows, None], dtype=precision)
                z *= beta
            e = np.exp(z)
            total = e @ ones
            e *= z
            mean = e @ ones / total
            square = np.einsum("ik,ik->i", e, z) / total
            true = self.true[rows] * beta
            sums[rows.start // self.parts[0].stop] = (
                self._sum(mean - true, rows),
                self._sum(square - mean**2, rows),
            )

        with one_blas_thread():
            run_pieces(work, self.parts, self.z.size)
        first, variance = sums.sum(axis=0) / self.total
        return float(first), float(variance)

    def gradients(self, s: float) -> Floats:
        """The derivative of the NLL of every row by s = ln(1 / T), (n,)."""
        each, beta = np.empty(self.n), np.exp(s)

        def work(rows: slice) -> None:
            z = np.subtract(self.z[rows], self.top[rows, None], dtype=np.float64) * beta
            e = np.exp(z)
            each[rows] = np.einsum("ik,ik->i", e, z) / e.sum(axis=1) - self.true[rows] * beta

        run_pieces(work, self.parts, self.z.size)
        return each


class _Margins:
    """The same for two classes, where the margin of the label over the other class says it all: one number a row."""

    def __init__(self, p: Predictions) -> None:
        self.n, self.weights = p.n, p.weights
        self.total = self.n if self.weights is None else float(self.weights.sum())
        self.parts = pieces(self.n, CHUNK_ELEMENTS)
        self.margin = np.empty(self.n)

        def work(rows: slice) -> None:
            values, labels = p.block(rows)
            z = values.astype(np.float64)
            z = z if p.score_type == "logits" else np.log(np.maximum(z, PROBABILITY_FLOOR))
            with np.errstate(over="ignore"):
                self.margin[rows] = np.where(labels == 1, z[:, 1] - z[:, 0], z[:, 0] - z[:, 1])

        run_pieces(work, self.parts, 2 * p.n)
        self.reach = float(max(self.margin.max(), -self.margin.min()))

    def diagnosis(self) -> Diagnosis:
        """Whether a finite optimum exists, as for more classes."""
        if self.reach < FLAT:
            return "constant scores"
        if (self.margin >= 0).all():
            return "separable"
        towards = self.margin.sum() if self.weights is None else self.weights @ self.margin
        return "anti-informative" if towards <= 0 else "converged"

    def derivatives(self, s: float, precision: type[np.floating[Any]]) -> tuple[float, float]:
        """First derivative of the mean NLL by s = ln(1 / T), and the mean variance of the scaled logits."""
        from scipy.special import expit

        beta, sums = precision(np.exp(s)), np.empty((len(self.parts), 2))

        def work(rows: slice) -> None:
            x = np.minimum(self.margin[rows].astype(precision) * beta, precision(1e4))  # beyond it nothing is left
            wrong = expit(-x)  # probability of the other class
            away = wrong * x
            both = away * (x - away)
            if self.weights is not None:
                away, both = away * self.weights[rows], both * self.weights[rows]
            sums[rows.start // self.parts[0].stop] = -away.sum(dtype=np.float64), both.sum(dtype=np.float64)

        run_pieces(work, self.parts, self.n)
        first, variance = sums.sum(axis=0) / self.total
        return float(first), float(variance)

    def gradients(self, s: float) -> Floats:
        """The derivative of the NLL of every row by s = ln(1 / T), (n,)."""
        from scipy.special import expit

        x = np.minimum(self.margin * np.exp(s), 1e4)
        return np.asarray(-expit(-x) * x)


def _newton(
    scores: "_Scores | _Margins", s: float, precision: type[np.floating[Any]], enough: float
) -> tuple[float, float, float, float]:
    """Newton's steps in s = ln(1 / T) inside a bracket, until one is small; s, that step, the derivatives before."""
    low, high = -np.inf, np.inf  # the gradient is negative at low and positive at high
    for _ in range(STEPS):
        first, variance = scores.derivatives(s, precision)
        low, high = (s, high) if first < 0 else (low, s)
        curvature = first + variance
        step = -first / curvature if curvature > 0 else -np.sign(first)
        following = s + max(-STRIDE, min(STRIDE, step))
        if low < high and not low <= following <= high:
            following = (low + high) / 2
        step, s = following - s, following
        if abs(step) < enough:
            break
    return s, step, first, variance
