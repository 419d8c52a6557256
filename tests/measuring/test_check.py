"""Limits: true unless broken, and open where there are too few rows for bounds."""

import numpy as np
import pytest
from synthetic import draw_rows

import calibrant as cal
from calibrant.core.errors import InputError


@pytest.fixture(scope="module")
def p():
    return cal.Predictions.from_logits(*draw_rows(2000, 5, seed=0, sharpness=2.0))


def test_a_check_is_false_when_its_limit_is_broken(p):
    assert not cal.check(p, "ece", limit=0.001)
    assert not cal.check(p, "ece", limit=0.001).passed
    with pytest.raises(AssertionError):
        assert cal.check(p, "ece", limit=0.001)


def test_a_check_is_true_when_its_limit_holds_or_is_inconclusive(p):
    wide, value = cal.check(p, "ece", limit=0.9), cal.measure(p, "ece", resamples=0).value
    near = cal.check(p, "ece", limit=value)
    assert (wide.state, wide.passed, bool(wide)) == ("holds", True, True)
    assert (near.state, near.passed, bool(near)) == ("inconclusive", True, True)


def test_of_too_few_rows_a_limit_is_inconclusive():
    two = cal.Predictions.from_confidence([0.9, 0.8], correct=[1, 1])
    check = cal.check(two, "accuracy", limit=0.5, side="min")
    assert (check.state, check.low, check.high) == ("inconclusive", None, None)
    assert "2, at least 10" in check.reason
    worse = cal.check_against(two, two, "accuracy", limit=0.5)
    assert (worse.state, worse.low, worse.high) == ("inconclusive", None, None)


@pytest.mark.parametrize("result", [cal.compare, lambda a, b: cal.calibration_test(a, resamples=10)])
def test_a_result_without_one_outcome_is_neither_true_nor_false(p, result):
    with pytest.raises(InputError, match="true or false"):
        bool(result(p, p))


@pytest.mark.parametrize("ask", [cal.measure, lambda p: cal.compare(p, p), lambda p: cal.check(p, "ece", limit=0.1)])
def test_an_array_is_refused_with_what_to_write_instead(ask):
    with pytest.raises(InputError, match=r"got list\. To fix it: write for instance Predictions\.from_probs"):
        ask([[0.9, 0.1]])


def test_a_limit_at_the_true_loss_is_rarely_called_kept():
    rng = np.random.default_rng(0)

    def sharpened(n):
        z = 2.5 * rng.normal(size=(n, 10))
        return cal.Predictions.from_logits(1.7 * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))

    limit = cal.measure(sharpened(200_000), "nll", resamples=0).value
    kept = [cal.check(sharpened(100), "nll", limit=limit, resamples=200).state == "holds" for _ in range(400)]
    assert sum(kept) <= 32  # 8 %, where 5 % is nominal; the bootstrap alone says so in 10 %
