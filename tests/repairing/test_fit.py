"""`fit` where all outcomes are alike: the map changes nothing and says why, whatever the calibrator."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import CATALOGUE

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
