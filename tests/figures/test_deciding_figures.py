"""Figures of decisions: net benefit (numbers of docs/methods/deciding.md), weights, clusters, shares answered."""

import numpy as np
import pytest

import calibrant as cal
from calibrant import Predictions
from calibrant.figures import CATALOGUE
from calibrant.figures.decision_curve import gains, net_benefit


def v_set(n=200):
    """docs/methods/deciding.md: the test set V."""
    i = np.arange(1, n + 1)
    s = (i - 0.5) / n
    return Predictions.binary(s, (np.modf(0.6180339887498949 * i)[0] < s**1.4).astype(int))


@pytest.mark.parametrize(
    ("threshold", "value", "on_all"),
    [(0.1, 0.36111111, 0.35), (0.3, 0.26428571, 0.16428571), (0.5, 0.18, -0.17)],
)
def test_net_benefit_of_the_test_set(threshold, value, on_all):
    benefit = net_benefit(v_set(), threshold)
    p = v_set()
    assert (benefit.value, p.mean(gains(p, threshold))) == pytest.approx((value, on_all), abs=1e-8)
    low, high = benefit.limits()
    assert low < benefit.value < high


def test_net_benefit_counts_weights_and_clusters():
    p, w = v_set(), np.random.default_rng(0).integers(0, 4, 200)
    weighted = Predictions.binary(p.score, p.labels, weights=w)
    repeated = net_benefit(p.take(np.repeat(np.arange(200), w)), 0.3)
    assert net_benefit(weighted, 0.3).limits() == pytest.approx(repeated.limits())
    twice = p.take(np.repeat(np.arange(200), 2))
    clustered = Predictions.binary(twice.score, twice.labels, clusters=np.repeat(np.arange(200), 2))
    assert net_benefit(clustered, 0.3).limits() == pytest.approx(net_benefit(p, 0.3).limits(), rel=0.01)


def test_the_decision_curve_is_the_net_benefit_and_ends_near_the_base_rate():
    p = v_set()
    rows = CATALOGUE.make("decision_curve:highest=0.5").data({"a": p})
    assert len(rows) == 99
    assert all(row["benefit"] == net_benefit(p, row["threshold"]).value for row in rows[::10])
    rare = Predictions.binary(p.score / 20, (np.arange(200) % 50 == 0).astype(int))
    assert CATALOGUE.make("decision_curve").data({"a": rare})[-1]["threshold"] == pytest.approx(0.1)


def test_of_other_tasks_it_is_about_being_right():
    p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]], [0, 1, 1])
    rows = CATALOGUE.make("decision_curve:highest=0.99").data({"a": p})
    at = next(row for row in rows if abs(row["threshold"] - 0.5) < 1e-9)
    assert at["benefit"] == pytest.approx(2 / 3 - 1 / 3)


def test_shares_answered_are_those_of_decide():
    rng = np.random.default_rng(0)
    s = rng.beta(5, 1.2, 3000)
    p = Predictions.from_confidence(s, (rng.random(3000) < s).astype(int))
    rows = CATALOGUE.make("answered_share").data({"a": p})
    at = next(row for row in rows if row["error"] == 0.1)
    assert at["answered"] == pytest.approx(cal.decide(p, max_error=0.1).answered.share)
    assert all(row["answered"] <= row["on_these_rows"] for row in rows)


def test_shares_of_clusters_and_of_weights_are_those_of_decide():
    rng = np.random.default_rng(0)
    s = rng.beta(5, 1.2, 3000)
    right, alone = (rng.random(3000) < s).astype(int), CATALOGUE.make("answered_share")
    plain = Predictions.from_confidence(s, right)
    for more in ({"clusters": np.arange(3000) // 3}, {"weights": rng.gamma(4, 0.25, 3000)}):
        p = Predictions.from_confidence(s, right, **more)
        at, before = (next(row for row in alone.data({"a": q}) if row["error"] == 0.1) for q in (p, plain))
        assert at["answered"] == pytest.approx(cal.decide(p, max_error=0.1).answered.share)
        assert 0 < at["answered"] < before["answered"]
