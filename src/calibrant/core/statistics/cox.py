"""Cox's recalibration: logistic regression of outcomes on the log-odds of their scores, for many resamples at once."""

from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.curve import BLOCK, Outcomes
from calibrant.core.parallel import pieces
from calibrant.core.statistics.logistic import explain_separation

STEPS = 200
TOLERANCE = 1e-9  # the longest last step, in log-odds: what is left is about its square
SAMPLE = 5_000  # rows of a first fit, where there are many more
WIDEST = 60.0  # range of log-odds for which a slope of 1 is a fair first guess


@dataclass(frozen=True, eq=False)
class CoxFit:
    """log-odds of the outcome = intercept + slope * log-odds of the score, by maximum likelihood."""

    intercept: float
    slope: float
    bread: Array  # (2, 2) inverse of the Fisher information: covariance of (intercept, slope) where the model is true

    def influence(self, x: Array, outcomes: Outcomes, weights: Array, coefficient: int) -> Array:
        """Influence of each row on the intercept (0) or the slope (1), to first order, (n,)."""
        of_constant, of_x = self.bread[:, coefficient]
        return np.asarray(weights * (outcomes - _expit(self.intercept + self.slope * x)) * (of_constant + of_x * x))


def why_no_fit(x: Array, outcomes: Array, *, fixed_slope: bool = False) -> str:
    """Why the likelihood has no maximum, in words; "" if it has one."""
    why = explain_separation(x, outcomes)
    if why.startswith("no "):
        return f"rows of one class only ({why})"
    if fixed_slope:
        return ""
    if x.min() == x.max():
        return "scores that are all equal"
    return f"separable rows ({why})" if why else ""


def fit_cox(x: Array, outcomes: Array, weights: Array, *, fixed_slope: bool = False) -> CoxFit:
    """Fit to log-odds x; `fixed_slope` holds the slope at 1. Ask `why_no_fit` first.

    >>> x, y = np.array([-1.0, -1, -1, 1, 1, 1]), np.array([0.0, 0, 1, 0, 1, 1])
    >>> fit = fit_cox(x, y, np.ones(6))
    >>> round(fit.slope, 6), abs(round(fit.intercept, 6))  # odds 1/2 at -1 and 2 at 1: slope ln 2
    (0.693147, 0.0)
    """
    start = None
    if len(x) > 4 * SAMPLE:
        part = slice(None, None, len(x) // SAMPLE)
        if not why_no_fit(x[part], outcomes[part], fixed_slope=fixed_slope):
            start = solve(x[part], outcomes[part], weights[None, part], fixed_slope=fixed_slope)[0]
    intercept, slope = solve(x, outcomes, weights[None], start, fixed_slope=fixed_slope)[0]
    information = np.zeros((2, 2))
    for part in pieces(len(x), BLOCK):
        q = _expit(intercept + slope * x[part])
        v = weights[part] * q * (1 - q)
        cross = float(v @ x[part])
        information += [[v.sum(), cross], [cross, v @ x[part] ** 2]]
    if fixed_slope:
        return CoxFit(float(intercept), 1.0, np.array([[1 / information[0, 0], 0.0], [0.0, 0.0]]))
    try:
        bread = np.asarray(np.linalg.inv(information), dtype=np.float64)
    except np.linalg.LinAlgError:  # weights so unequal that a single row counts: nothing says what the slope is
        return CoxFit(np.nan, np.nan, np.full((2, 2), np.nan))
    return CoxFit(float(intercept), float(slope), bread)


def solve(x: Array, outcomes: Array, weights: Array, start: Array | None = None, *, fixed_slope: bool = False) -> Array:
    """(intercept, slope) for each row of weights (b, n), as (b, 2), by Newton steps; NaN without an optimum.

    A step that would change log-odds by at most d is shortened to ln(1 + d): with the third derivative of the logistic
    loss bounded by its second, the loss falls at every step and no search along it is needed.
    """
    centre = float(x.mean())  # far from 0 the two coefficients would hide each other's digits
    low, high = float(x.min()) - centre, float(x.max()) - centre
    slope = 1.0 if fixed_slope else WIDEST / max(high - low, WIDEST)
    theta = np.tile([0.0, slope] if start is None else start, (len(weights), 1))
    theta[:, 0] += theta[:, 1] * centre
    open_rows = np.arange(len(weights))
    for _ in range(STEPS):
        now = theta[open_rows]
        g0, g1, h00, h01, h11 = _sums(x, centre, outcomes, weights, open_rows, now)
        with np.errstate(all="ignore"):
            if fixed_slope:
                step = np.stack([g0 / h00, np.zeros(len(g0))], axis=1)
            else:
                det = h00 * h11 - h01 * h01
                step = np.stack([h11 * g0 - h01 * g1, h00 * g1 - h01 * g0], axis=1) / det[:, None]
            change = np.maximum(np.abs(step[:, 0] + step[:, 1] * low), np.abs(step[:, 0] + step[:, 1] * high))
            theta[open_rows] = now + step * (np.log1p(change) / np.maximum(change, 1e-300))[:, None]
        open_rows = open_rows[~(change <= TOLERANCE * (1 + np.abs(theta[open_rows]).max(axis=1)))]
        open_rows = open_rows[np.isfinite(theta[open_rows]).all(axis=1)]
        if not len(open_rows):
            break
    theta[open_rows] = np.nan
    theta[:, 0] -= theta[:, 1] * centre
    return np.where(np.isfinite(theta), theta, np.nan)


def _sums(x: Array, centre: float, outcomes: Array, weights: Array, which: Ints, theta: Array) -> Array:
    """Sums over the rows for a Newton step, some rows at a time, (5, b): first those of the gradient."""
    sums = np.zeros((5, len(which)))
    for part in pieces(len(x), BLOCK):
        near, w = x[part] - centre, weights[which, part]
        q = _expit(theta[:, :1] + theta[:, 1:] * near)
        r, v = w * (outcomes[part] - q), w * (q * (1 - q))
        sums += [r.sum(axis=1), r @ near, v.sum(axis=1), v @ near, v @ (near * near)]
    return sums


def _expit(x: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(x))
