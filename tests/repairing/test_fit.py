"""`fit` where all outcomes are alike: the map changes nothing and says why, whatever the calibrator."""

import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import CATALOGUE
from calibrant.core.errors import ProbabilitiesAsLogitsWarning, ReversedScoresWarning

NAMES = CATALOGUE.names()
SOME = [[2.0, 0.0], [0.0, 1.0], [0.5, 0.0], [0.0, 3.0]]


def all_right(n):
    z = np.resize(SOME, (n, 2))
    return cal.Predictions.from_logits(z, z.argmax(axis=1))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_learned_from_outcomes_that_are_alike(name):
    p = all_right(8)
    m = cal.fit(p, name)
    if not CATALOGUE.make(name).learns:
        assert m.calibrator == name
        return
    assert (m.calibrator, m.fit.converged) == ("identity", False)
    assert m.fit.diagnosis == "every prediction is right, so there is nothing to fit"
    assert np.array_equal(m(p).values, p.values)


@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_rows_that_are_all_right(n):
    assert cal.fit(all_right(n), "temperature").calibrator == "identity"
    if n > 1:  # of one row nothing can be held out
        assert cal.fit(all_right(n), "auto").calibrator == "identity"


def test_rows_without_a_positive_and_rows_of_weight_0():
    p = cal.Predictions.binary([0.1, 0.4, 0.2], [0, 0, 1], weights=[1, 1, 0])
    assert cal.fit(p, "platt").fit.diagnosis == "every row is negative, so there is nothing to fit"


def test_auto_says_that_there_is_nothing_to_fit():
    p = cal.Predictions.binary(np.linspace(0.1, 0.9, 100), np.zeros(100, int))
    for m in (cal.fit(p, "auto"), cal.choose(p).map):
        assert (m.fit.converged, m.fit.diagnosis) == (False, "every row is negative, so there is nothing to fit")


@pytest.mark.parametrize("build", [cal.Predictions.binary, cal.Predictions.from_confidence])
def test_reversed_scores_and_probabilities_as_logits_are_told(build):
    s = np.random.default_rng(0).random(300)
    y = np.random.default_rng(1).random(300) < s
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.fit(build(s, y), "platt")
        cal.fit(build(np.log(s / (1 - s)), y, logits=True), "platt")
        cal.fit(build(s, np.random.default_rng(2).random(300) < 0.5), "platt")  # says nothing, but is not reversed
    with pytest.warns(ReversedScoresWarning, match="give 1 - scores"):
        cal.fit(build(1 - s, y), "platt")
    with pytest.warns(ProbabilitiesAsLogitsWarning, match="leave out logits=True"):
        cal.fit(build(s, y, logits=True), "platt")


def test_one_reversed_cluster_does_not_make_scores_reversed():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(4), 200)
    y = rng.random(800) < np.where(clusters == 0, 0.9, 0.3)
    s = np.where(clusters == 0, 0.2, rng.random(4)[clusters])
    with pytest.warns(ReversedScoresWarning):
        cal.fit(cal.Predictions.binary(s, y), "platt")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.fit(cal.Predictions.binary(s, y, clusters=clusters), "platt")


def test_a_chain_that_learns_nothing_is_fitted():
    assert cal.fit(all_right(8), "fixed_temperature+isotonic").calibrator == "identity"
    assert cal.fit(all_right(8), "fixed_temperature:T=2").parameters["T"] == 2


def test_a_group_without_errors_gets_the_map_of_all_rows():
    z, labels = np.array(SOME * 4), np.array([0, 1, 0, 1] * 3 + [0, 1, 1, 0])
    groups = ["a"] * 8 + ["b"] * 8
    m = cal.fit(cal.Predictions.from_logits(z, labels, groups=groups), "temperature", by_group=True)
    assert set(m.groups) == {"b"}
    rows = cal.Predictions.from_logits(z[:8], labels[:8], groups=groups[:8])
    whole = cal.fit(cal.Predictions.from_logits(z, labels), "temperature")
    np.testing.assert_allclose(m(rows).probs, whole(rows).probs)
