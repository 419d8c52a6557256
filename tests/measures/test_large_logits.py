"""Logits whose probabilities floats cannot tell apart: measures of ranking and of log-odds read the logits."""

import numpy as np
import pytest
from synthetic import saturated

from calibrant.core.curves.curve import LONG
from calibrant.core.curves.keys import keys_of, log_odds_of, scores_of
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.logistic import fit_logistic
from calibrant.measures import make

RANKING = ("auroc_correct", "aurc", "eaurc", "aupr_success", "aupr_error", "fpr95")


def binary(z, y, **rows):
    return Predictions.binary(z, y, logits=True, **rows)


def overlapping(scale, *, seed=0, n=4000):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    return scale * z, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


@pytest.mark.parametrize("name", ["roc_auc", "average_precision", "auroc_correct", "aupr_success"])
@pytest.mark.parametrize("logits", [(40, 50), (-900, -800), (-1e29, 1e29)])
def test_the_larger_of_two_large_logits_ranks_higher(name, logits):
    assert make(name)(binary(logits, [0, 1])) == 1.0
    assert make(name)(binary(logits, [1, 0])) < 1.0


@pytest.mark.parametrize("name", ["roc_auc", "average_precision", *RANKING])
@pytest.mark.parametrize("scale", [20, 1000])
def test_the_scale_of_logits_changes_no_ranking(name, scale):
    z, y = overlapping(1.0)
    weights = np.random.default_rng(1).integers(0, 4, len(z))
    for rows in ({}, {"weights": weights}):
        assert make(name)(binary(scale * z, y, **rows)) == pytest.approx(make(name)(binary(z, y, **rows)), abs=1e-12)


@pytest.mark.parametrize("name", RANKING)
def test_leads_of_the_top_class_are_told_apart(name):
    """Confidences of leads 5 to 60 in five classes; the same order as leads of 0.5 to 6."""
    rng = np.random.default_rng(2)
    lead, y = rng.uniform(5, 60, 500), rng.integers(0, 2, 500)

    def predictions(leads):
        return Predictions.from_logits(np.pad(leads[:, None], ((0, 0), (0, 4))), y)

    assert make(name)(predictions(lead)) == pytest.approx(make(name)(predictions(lead / 10)), abs=1e-12)


def test_equal_confidences_stay_equal_in_any_order_of_classes():
    rng = np.random.default_rng(3)
    row = np.array([25.0, 0.1, 0.2, 0.3, 0.7])
    logits = np.stack([rng.permutation(row) for _ in range(200)])
    p = Predictions.from_logits(logits, logits.argmax(axis=1) * (np.arange(200) % 2))
    assert make("auroc_correct")(p) == 0.5


def test_saturated_rows_are_ranked_by_their_leads():
    logits, y = saturated(40, 4, seed=10)
    p = Predictions.from_logits(logits, y)
    second = np.sort(logits, axis=1)
    odds = second[:, -1] - second[:, -2] - np.log(np.exp(second[:, :-1] - second[:, -2:-1]).sum(axis=1))
    right = p.correct
    won = [(a > b) + (a == b) / 2 for a in odds[right] for b in odds[~right]]
    assert make("auroc_correct")(p) == pytest.approx(np.mean(won), abs=1e-12)


@pytest.mark.parametrize("scale", [0.5, 10, 50, 1e4, 1e8])
@pytest.mark.parametrize("scope", ["event", "top"])
def test_slope_and_intercept_are_those_of_a_regression_on_the_logits(scale, scope):
    z, y = overlapping(scale)
    p = binary(z, y)
    x, outcome = (z, y) if scope == "event" else (np.abs(z), p.correct)
    fit = fit_logistic(x[:, None] / scale, outcome.astype(float))
    assert make(f"slope:scope={scope}")(p) * scale == pytest.approx(fit.slopes[0], rel=1e-8)
    assert make(f"intercept:scope={scope}")(p) == pytest.approx(fit.offset, abs=1e-8)


def test_the_interval_of_the_slope_shrinks_with_the_scale():
    z, y = overlapping(1.0)
    import calibrant as cal

    near, far = (cal.measure(binary(scale * z, y), "slope") for scale in (1.0, 100.0))
    assert (far.low * 100, far.high * 100) == pytest.approx((near.low, near.high), rel=1e-6)


def test_probabilities_are_ranked_as_they_were():
    p = Predictions.binary([1.0, 1.0, 0.0, 1e-300, 0.4], [0, 1, 0, 1, 0])
    assert p.ranking is p.curve
    assert make("roc_auc")(p) == pytest.approx((0.5 + 1 + 1 + 0 + 1 + 0) / 6)


def test_keys_keep_the_order_and_give_the_scores_back():
    z = np.sort(np.concatenate([[-1e30, -5000, -800, -700, 1e30], np.linspace(-60, 60, 2001)]))
    with np.errstate(over="ignore"):
        scores = 1 / (1 + np.exp(-z))
    keys = keys_of(scores, lambda rows: z[rows])
    assert (np.diff(keys) > 0).all()
    assert scores_of(keys) == pytest.approx(scores, abs=1e-15)
    near = np.abs(z) < 5000
    assert log_odds_of(keys)[near] == pytest.approx(z[near], rel=1e-10, abs=1e-10)


@pytest.mark.slow
def test_very_many_rows_are_told_apart_too():
    z = np.linspace(40, 800, LONG + 3)
    y = np.arange(len(z)) > LONG // 2
    p = binary(z, y.astype(int))
    assert make("roc_auc")(p) == 1.0
    assert p.ranking.scores.max() <= 1
