"""Cox's recalibration: standard errors, many resamples at once, rows far from one half."""

import numpy as np
import pytest
from clinical_rows import OUTCOMES, SCORES

from calibrant.core.curves.keys import floored_log_odds as log_odds
from calibrant.core.statistics.cox import fit_cox, solve, why_no_fit
from calibrant.core.statistics.logistic import fit_logistic


def test_standard_errors_of_the_specification():
    """docs/methods/vectors.md#clinical-measures"""
    fit = fit_cox(log_odds(SCORES), OUTCOMES.astype(float), np.ones(200))
    assert np.sqrt(np.diag(fit.bread)) == pytest.approx([0.19382684, 0.18555760], abs=1e-8)
    rows = log_odds(SCORES), OUTCOMES, np.ones(200)
    assert [fit.influence(*rows, coefficient).sum() for coefficient in (0, 1)] == pytest.approx([0, 0], abs=1e-9)


def test_resamples_at_once_are_single_fits():
    x, y = log_odds(SCORES), OUTCOMES.astype(float)
    counts = np.random.default_rng(0).multinomial(200, np.full(200, 1 / 200), size=20).astype(float)
    together = solve(x, y, counts, np.array([-0.5, 1.2]))
    for c, (intercept, slope) in zip(counts, together, strict=True):
        alone = fit_logistic(x[:, None], y, c)
        assert (intercept, slope) == pytest.approx((alone.offset, alone.slopes[0]), abs=1e-7)


def test_log_odds_far_from_zero_lose_no_digits():
    rng = np.random.default_rng(0)
    x = -12 + 0.01 * rng.normal(size=2000)
    y = (rng.random(2000) < 0.3).astype(float)
    fit, other = fit_cox(x, y, np.ones(2000)), fit_logistic(x[:, None], y)
    assert fit.slope == pytest.approx(other.slopes[0], rel=1e-6)


def test_a_start_from_a_sample_changes_nothing():
    rng = np.random.default_rng(1)
    s = rng.beta(1, 9, 30_000)
    x, y, w = log_odds(s), (rng.random(30_000) < s).astype(float), rng.random(30_000)
    fit = fit_cox(x, y, w)
    assert (fit.intercept, fit.slope) == pytest.approx(tuple(solve(x, y, w[None])[0]), abs=1e-9)


def test_separable_resamples_have_no_fit():
    x, y = np.array([-2.0, -1, 1, 2, 0.5]), np.array([0.0, 0, 1, 1, 0])
    weights = np.array([[1.0, 1, 1, 1, 0], [1, 1, 1, 1, 1], [0, 2, 2, 0, 0]])
    assert [why_no_fit(x[w > 0], y[w > 0]) != "" for w in weights] == [True, True, True]
    assert np.isnan(solve(x, y, weights)[:, 1]).all()
