"""Measures of Cox's recalibration: outcomes regressed on the log-odds of their scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.catalogue import spec_of
from calibrant.core.curves.curve import BLOCK, Curve
from calibrant.core.curves.keys import floored_log_odds, log_odds_of
from calibrant.core.errors import UndefinedMeasureError
from calibrant.core.parallel import pieces
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.bootstrap import BATCH_ELEMENTS
from calibrant.core.statistics.cox import CoxFit, fit_cox, solve, why_no_fit
from calibrant.core.statistics.estimate import Estimate, Normal
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures._base import ROBUST, RankingMeasure

FLOORED = "log-odds of scores (exact from logits, probabilities floored at 1e-12)"


@dataclass(frozen=True)
class LogOddsMeasure(RankingMeasure):
    """A coefficient of the logistic regression of outcomes on the log-odds of their scores.

    On rows where the likelihood has no maximum it raises UndefinedMeasureError. Its interval comes from the robust
    (sandwich) standard error, in which the rows of one cluster count together.
    """

    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    undefined_for: ClassVar[str] = "rows of one class only, separable rows, or scores that are all equal"
    coefficient: ClassVar[int]  # 0: the intercept; 1: the slope
    fixed_slope: ClassVar[bool] = False

    def from_curve(self, curve: Curve) -> float:
        fit = self._fit(curve)
        return float((fit.intercept, fit.slope)[self.coefficient])

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        """With the influence of each row in the order of the rows, which need not be sorted for it."""
        if rows.subtracted:
            return super().estimate(p, rows)
        fit, influence = self._fit(self.curve(p)), np.empty(p.n)
        _, outcomes = self.scores(p)
        keys = p.confidence_keys if self.scope == "top" else p.score_keys
        log_odds = log_odds_of if p.score_type == "logits" else floored_log_odds
        for part in pieces(p.n, BLOCK):
            weights = np.ones(len(keys[part])) if p.weights is None else p.weights[part]
            influence[part] = fit.influence(log_odds(keys[part]), outcomes[part], weights, self.coefficient)
        value = float((fit.intercept, fit.slope)[self.coefficient])
        return self.with_noise(value, Normal(error=rows.error(influence), freedom=rows.freedom, method=ROBUST))

    def resample(self, p: Predictions, counts: Ints) -> Array:
        """The coefficient on each resample; NaN where there is no fit."""
        curve = self.curve(p)
        x, fit, batch = curve.log_odds(), self._fit(curve), max(1, BATCH_ELEMENTS // max(curve.n, 1))
        start, values = np.array([fit.intercept, fit.slope]), []
        for first in range(0, len(counts), batch):
            w = counts[first : first + batch, curve.order] * curve.weights
            fitted = solve(x, curve.outcomes, w, start, fixed_slope=self.fixed_slope)[:, self.coefficient]
            exists = [not why_no_fit(x[c > 0], curve.outcomes[c > 0], fixed_slope=self.fixed_slope) for c in w]
            values.append(np.where(exists, fitted, np.nan))
        return np.concatenate(values)

    def _fit(self, curve: Curve) -> CoxFit:
        x = curve.log_odds()
        why = why_no_fit(x, curve.outcomes, fixed_slope=self.fixed_slope)
        fit = None if why else fit_cox(x, curve.outcomes, curve.weights, fixed_slope=self.fixed_slope)
        if fit is None or not np.isfinite(fit.intercept + fit.slope):
            raise UndefinedMeasureError(
                spec_of(self),
                expected="outcomes of both classes" + ("" if self.fixed_slope else ", not told apart by one threshold"),
                got=why or "rows that are nearly separable",
                fix="measure more rows, or ask for ece or atb, which always exist",
            )
        return fit
