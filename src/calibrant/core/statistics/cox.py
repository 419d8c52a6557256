"""Cox's recalibration: logistic regression of outcomes on the log-odds of their scores, for many resamples at once."""

from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.statistics.logistic import explain_separation

FLOOR = 1e-12  # scores of 0 and 1 have no log-odds: they count as this far from it
STEPS = 200
TOLERANCE = 1e-9  # the longest last step, in log-odds: what is left is about its square
SAMPLE = 5_000  # rows of a first fit, where there are many more


@dataclass(frozen=True, eq=False)
class CoxFit:
    """log-odds of the outcome = intercept + slope * log-odds of the score, by maximum likelihood."""

    intercept: float
    slope: float
    bread: Array  # (2, 2) inverse of the Fisher information: covariance of (intercept, slope) where the model is true
    scores_of_rows: Array  # (n, 2) gradient of each row's log likelihood, with its weight

    @property
    def influence(self) -> Array:
        """What each row adds to the errors of (intercept, slope), to first order, (n, 2)."""
        return self.scores_of_rows @ self.bread


def log_odds(scores: Array) -> Array:
    """Log-odds of scores, which are floored at 1e-12 and 1 - 1e-12."""
    s = np.clip(scores, FLOOR, 1 - FLOOR)
    return np.asarray(np.log(s) - np.log1p(-s))


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
    q = _expit(intercept + slope * x)
    v, r = weights * q * (1 - q), weights * (outcomes - q)
    if fixed_slope:
        return CoxFit(intercept, 1.0, np.diag([1 / v.sum(), 0.0]), np.stack([r, np.zeros(len(r))], axis=1))
    cross = float(v @ x)
    information = np.array([[v.sum(), cross], [cross, v @ x**2]])
    return CoxFit(float(intercept), float(slope), np.linalg.inv(information), np.stack([r, r * x], axis=1))


def solve(x: Array, outcomes: Array, weights: Array, start: Array | None = None, *, fixed_slope: bool = False) -> Array:
    """(intercept, slope) for each row of weights (b, n), as (b, 2), by Newton steps; NaN without an optimum.

    A step that would change log-odds by at most d is shortened to ln(1 + d): with the third derivative of the logistic
    loss bounded by its second, the loss falls at every step and no search along it is needed.
    """
    centre = float(x.mean())  # far from 0 the two coefficients would hide each other's digits
    x = x - centre
    theta = np.tile([0.0, 1.0] if start is None else start, (len(weights), 1))
    theta[:, 0] += theta[:, 1] * centre
    low, high = float(x.min()), float(x.max())
    open_rows = np.arange(len(weights))
    for _ in range(STEPS):
        w, now = weights[open_rows], theta[open_rows]
        q = _expit(now[:, :1] + now[:, 1:] * x)
        r = w * (outcomes - q)
        v = w * (q * (1 - q))
        g0, h00 = r.sum(axis=1), v.sum(axis=1)
        with np.errstate(all="ignore"):
            if fixed_slope:
                step = np.stack([g0 / h00, np.zeros(len(g0))], axis=1)
            else:
                g1, h01, h11 = r @ x, v @ x, v @ (x * x)
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


def _expit(x: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(x))
