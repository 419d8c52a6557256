"""The temperature that minimises the negative log-likelihood, exactly, with a proof or a diagnosis."""

import sys
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats
from calibrant.core.cached_property import cached_property
from calibrant.core.curves import native
from calibrant.core.parallel import one_blas_thread, pieces, run_pieces
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import CHUNK_ELEMENTS, KEEP_ELEMENTS, PROBABILITY_FLOOR

Diagnosis = Literal["converged", "separable", "anti-informative", "constant scores"]

NO_OPTIMUM = {"separable": 0.01, "anti-informative": 100.0, "constant scores": 1.0}  # T when there is none
SMALL_STEP = 1e-4  # in ln T; the error after a step is about its third power
ROUGH_STEP = 4e-3  # the same in float32
SAMPLE, SAMPLE_STEP = 1000, 0.1  # rows, and ln T
STRIDE = 2.0  # the longest step in ln T: far out, curvature says little
STEPS = 100
STEPS_IN_DOUBT = 3  # after which rising likelihoods alone make one ask whether there is an optimum
NOWHERE = 1e25  # so far below the others, in float32 too, an option that is not there has no part at any T
FLAT = 1e-30  # logits of a row that differ by less say nothing


@dataclass(frozen=True)
class TemperatureFit:
    """The temperature T, its standard error, and how its optimum was proved or why there is none.

    `gradient` bounds |d NLL / d ln T| at T, `stderr` is the standard error of T: from the curvature, or where rows come
    in clusters, from the spread of the gradients of clusters (the infinitesimal jackknife, times G / (G - 1) for G
    clusters), which is what resampling whole clusters gives. Diagnoses other than
    "converged" name why no finite optimum exists; T is then the end of 0.01 .. 100 that the likelihood points to.
    """

    T: float
    stderr: float
    gradient: float
    diagnosis: Diagnosis


def find_temperature(p: Predictions) -> TemperatureFit:
    """Safeguarded steps of Halley's method in ln T on the convex objective, from logits, with float64 sums.

    >>> z = np.array([[2.0, 0.0]] * 4)
    >>> fit = find_temperature(Predictions.from_logits(z, [0, 0, 0, 1]))  # right 3 times in 4: z / T = ln 3
    >>> round(fit.T, 6), fit.diagnosis
    (1.820478, 'converged')
    """
    if p.weights is not None and (p.weights == 0).any():
        p = p.take(p.weights > 0)
    scores = _scores_of(p)
    if scores.worst > -FLAT and scores.reach < FLAT:
        return _without_optimum("constant scores")
    if scores.worst >= 0:
        return _without_optimum("separable")
    near = 0.0
    if p.n > 4 * SAMPLE:  # cheap steps first, on a few rows and in float32: the end does not depend on them
        few = scores.take(slice(None, None, p.n // SAMPLE))
        optimum = None if few.worst >= 0 else _solve(few, near, np.float32, SAMPLE_STEP)
        near = near if optimum is None else optimum.s
    if not native.is_available():  # whose passes take as long in float64
        optimum = _solve(scores, near, np.float32, ROUGH_STEP)
        near = near if optimum is None else optimum.s
    optimum = _solve(scores, near, np.float64, SMALL_STEP)
    if optimum is None:
        return _without_optimum("anti-informative")
    T = float(np.exp(-optimum.s))
    curvature = optimum.curvature
    if curvature <= 0:
        stderr = np.inf
    elif p.clusters is None:
        stderr = float(T / np.sqrt(p.n_effective * curvature))
    else:
        stderr = T * _cluster_error(scores.gradients(optimum.s), p) / curvature
    return TemperatureFit(T, stderr, min(optimum.gradient, sys.float_info.max), "converged")


def _without_optimum(diagnosis: Diagnosis) -> TemperatureFit:
    return TemperatureFit(NO_OPTIMUM[diagnosis], np.inf, float("nan"), diagnosis)


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
    return _Margins.of(p) if p.k == 2 and p.row_data.option_mask is None else _Scores.of(p)


class Derivatives(NamedTuple):
    """Derivatives of the mean NLL by s = ln(1 / T), from cumulants of the scaled logits averaged over rows."""

    first: float
    variance: float
    skew: float  # third cumulant
    reach: float  # the widest range of a row of scaled logits

    @property
    def second(self) -> float:
        return self.first + self.variance

    @property
    def third(self) -> float:
        return self.first + 3 * self.variance + self.skew


@dataclass(frozen=True, eq=False)
class _Scores:
    """Logits with the largest of each row subtracted, and the likelihood and its derivatives at a temperature.

    There is no finite optimum if every label has the largest logit of its row (`worst` is 0): the NLL falls for ever.
    Nor if labels have, on average, no more than the mean logit of their row (`is_anti_informative`): the NLL is convex
    in 1 / T and rises from 1 / T = 0 on. In all other cases there is one optimum.
    """

    z: Floats
    top: Array  # largest logit of each row
    true: Array  # logit of the label, minus the largest
    weights: Array | None
    exists: npt.NDArray[np.bool_] | None

    @classmethod
    def of(cls, p: Predictions) -> "_Scores":
        z, top, exists = p.logits, p.largest_logit.astype(np.float64, copy=False), p.row_data.option_mask
        if exists is not None:
            z = np.where(exists, z, (top[:, None] - NOWHERE).astype(z.dtype))
        return cls(z, top, z[np.arange(p.n), p.labels] - top, p.weights, exists)

    def take(self, rows: slice) -> "_Scores":
        top, true = self.top[rows].copy(), self.true[rows].copy()
        weights = None if self.weights is None else self.weights[rows].copy()
        return _Scores(self.z[rows], top, true, weights, None if self.exists is None else self.exists[rows])

    @property
    def n(self) -> int:
        return len(self.z)

    @cached_property
    def total(self) -> float:
        """The number of rows, by their weights."""
        return self.n if self.weights is None else float(self.weights.sum())

    @property
    def parts(self) -> list[slice]:
        return pieces(self.n, max(1, CHUNK_ELEMENTS // self.z.shape[1]))

    @property
    def worst(self) -> float:
        """The label that lies farthest below the largest logit of its row."""
        return float(self.true.min())

    @property
    def is_anti_informative(self) -> bool:
        away = np.empty(self.n)

        def work(rows: slice) -> None:
            below = np.subtract(self.z[rows], self.top[rows, None], dtype=np.float64)
            mean = below.mean(axis=1) if self.exists is None else below.mean(axis=1, where=self.exists[rows])
            away[rows] = mean - self.true[rows]

        run_pieces(work, self.parts, self.z.size)
        return float(away.sum() if self.weights is None else self.weights @ away) >= 0

    @cached_property
    def reach(self) -> float:
        """The widest range of a row."""
        low = self.z.min(axis=1) if self.exists is None else self.z.min(axis=1, where=self.exists, initial=np.inf)
        return float((self.top - low).max())

    @cached_property
    def _shifted(self) -> Floats | None:
        """Logits minus the largest of their row, in float32; None where they are so many that memory counts."""
        return (self.z - self.top[:, None]).astype(np.float32) if self.z.size <= KEEP_ELEMENTS else None

    def derivatives(self, s: float, precision: type[np.floating[Any]]) -> Derivatives:
        beta = precision(np.exp(s))
        if native.is_available() and self.z.dtype in native.TYPES:  # float64 costs no more than float32
            *sums, reach = native.temperature_sums(self.z, self.top, self.true, self.weights, float(np.exp(s))).tolist()
            reach = reach if self.exists is None else self.reach * float(beta)
        else:
            sums, reach = self._sums(beta), self.reach * float(beta)
        first, variance, skew = (of / self.total for of in sums)
        return Derivatives(first, variance, skew, reach)

    def _sums(self, beta: "np.floating[Any]") -> list[float]:
        """Sums over rows of the first derivative and of the second and third cumulants, in the precision of beta."""
        parts, precision = self.parts, type(beta)
        sums, ones = np.empty((len(parts), 3)), np.ones(self.z.shape[1], dtype=precision)
        shifted = self._shifted if precision is np.float32 else None

        def work(rows: slice) -> None:
            if shifted is not None:
                z = shifted[rows] * beta
            else:
                z = np.subtract(self.z[rows], self.top[rows, None], dtype=precision)
                z *= beta
            e = np.exp(z)
            total = e @ ones
            np.maximum(z, precision(-1e4), out=z)  # where e is 0, but the third power need not be finite
            e *= z
            mean = e @ ones / total
            e *= z
            square = e @ ones / total
            cube = np.einsum("ik,ik->i", e, z) / total
            terms = mean - self.true[rows] * beta, square - mean**2, cube - mean * (3 * square - 2 * mean**2)
            sums[rows.start // parts[0].stop] = [self._sum(term, rows) for term in terms]

        with one_blas_thread():
            run_pieces(work, parts, self.z.size)
        return [float(of) for of in sums.sum(axis=0)]

    def _sum(self, values: Floats, rows: slice) -> float:
        if self.weights is None:
            return float(values.sum(dtype=np.float64))
        return float(self.weights[rows] @ values.astype(np.float64))

    def gradients(self, s: float) -> Floats:
        """The derivative of the NLL of every row by s = ln(1 / T), (n,)."""
        gradients, beta = np.empty(self.n), np.exp(s)

        def work(rows: slice) -> None:
            z = np.subtract(self.z[rows], self.top[rows, None], dtype=np.float64) * beta
            e = np.exp(z)
            gradients[rows] = np.einsum("ik,ik->i", e, z) / e.sum(axis=1) - self.true[rows] * beta

        run_pieces(work, self.parts, self.z.size)
        return gradients


@dataclass(frozen=True, eq=False)
class _Margins:
    """Likelihood at a temperature for two classes, from the margin of the label over the other class of each row."""

    margin: Array
    weights: Array | None

    @classmethod
    def of(cls, p: Predictions) -> "_Margins":
        margin = np.empty(p.n)

        def work(rows: slice) -> None:
            values, labels = p.block(rows)
            z = values.astype(np.float64)
            z = z if p.score_type == "logits" else np.log(np.maximum(z, PROBABILITY_FLOOR))
            with np.errstate(over="ignore"):
                margin[rows] = np.where(labels == 1, z[:, 1] - z[:, 0], z[:, 0] - z[:, 1])

        run_pieces(work, pieces(p.n, CHUNK_ELEMENTS), 2 * p.n)
        return cls(margin, p.weights)

    def take(self, rows: slice) -> "_Margins":
        return _Margins(self.margin[rows].copy(), None if self.weights is None else self.weights[rows].copy())

    @cached_property
    def total(self) -> float:
        """The number of rows, by their weights."""
        return len(self.margin) if self.weights is None else float(self.weights.sum())

    @cached_property
    def reach(self) -> float:
        """The widest range of a row."""
        return float(max(self.margin.max(), -self.margin.min()))

    @property
    def worst(self) -> float:
        return float(self.margin.min())

    @property
    def is_anti_informative(self) -> bool:
        return float(self.margin.sum() if self.weights is None else self.weights @ self.margin) <= 0

    def derivatives(self, s: float, precision: type[np.floating[Any]]) -> Derivatives:
        from scipy.special import expit

        parts, beta = pieces(len(self.margin), CHUNK_ELEMENTS), precision(np.exp(s))
        sums = np.empty((len(parts), 3))

        def work(rows: slice) -> None:
            x = np.minimum(self.margin[rows].astype(precision) * beta, precision(1e4))  # beyond it nothing is left
            wrong = expit(-x)  # probability of the other class
            away = wrong * x
            both = away * (x - away)
            terms = -away, both, both * (2 * away - x)
            weights = None if self.weights is None else self.weights[rows]
            sums[rows.start // parts[0].stop] = [
                term.sum(dtype=np.float64) if weights is None else weights @ term.astype(np.float64) for term in terms
            ]

        run_pieces(work, parts, len(self.margin))
        first, variance, skew = (float(of) for of in sums.sum(axis=0) / self.total)
        return Derivatives(first, variance, skew, self.reach * float(beta))

    def gradients(self, s: float) -> Floats:
        """The derivative of the NLL of every row by s = ln(1 / T), (n,)."""
        from scipy.special import expit

        x = np.minimum(self.margin * np.exp(s), 1e4)
        return np.asarray(-expit(-x) * x)


class _Solution(NamedTuple):
    """The last point of the steps, the last step, and the derivatives before it."""

    s: float
    step: float
    before: Derivatives

    @property
    def curvature(self) -> float:
        return self.before.second + self.before.third * self.step

    @property
    def gradient(self) -> float:
        """A bound on |d NLL / d s| after the last step: Taylor's polynomial, and the largest remainder.

        A variable of range R has |third cumulant| <= R variance and |fourth| <= R^2 variance, and on the way its
        variance grows by exp((R + 2) |step|) at most.
        """
        (first, variance, _, reach), h = self.before, self.step
        near = first + self.before.second * h + self.before.third * h**2 / 2
        with np.errstate(over="ignore"):  # of logits hundreds apart: the bound says nothing
            rest = (abs(first) + (7 + reach * (6 + reach)) * variance) * np.exp(min((reach + 2) * abs(h), 700.0))
            return float(abs(near) + abs(h) ** 3 / 6 * rest)


def _solve(
    scores: "_Scores | _Margins", s: float, precision: type[np.floating[Any]], enough: float
) -> _Solution | None:
    """Halley's steps in s = ln(1 / T) inside a bracket, until one is small; None where there is no optimum.

    A negative gradient anywhere proves that the scores are not anti-informative; without one, they are asked.
    """
    low, high = -np.inf, np.inf  # the gradient is negative at low and positive at high
    for number in range(1, STEPS + 1):
        at = scores.derivatives(s, precision)
        low, high = (s, high) if at.first < 0 else (low, s)
        following = s + max(-STRIDE, min(STRIDE, _step(at)))
        if low < high and not low <= following <= high:
            following = (low + high) / 2
        step, s = following - s, following
        done = abs(step) < enough
        if low == -np.inf and (done or number == STEPS_IN_DOUBT) and scores.is_anti_informative:
            return None
        if done:
            break
    return _Solution(s, step, at)


def _step(at: Derivatives) -> float:
    """Halley's step, or Newton's where the two differ much, or one downhill."""
    if at.second <= 0:
        return -float(np.sign(at.first))
    newton = -at.first / at.second
    bend = newton * at.third / at.second / 2
    return newton / (1 + bend) if abs(bend) < 0.5 else newton
