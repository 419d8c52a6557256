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
    worse = cal.check(two, "accuracy", against=two, limit=0.5)
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


@pytest.mark.parametrize(
    ("what", "limit", "side", "says"),
    [
        ("ece", 5, "max", r"limit of ece: expected 0 to 1, got 5\. To fix it: for 5 % write 0\.05"),
        ("ece", -0.1, "max", "limit of ece: expected 0 to 1"),
        ("accuracy", 80, "min", r"for 80 % write 0\.8"),
        ("nll", -1, "max", "expected 0 or more"),
        ("nll", float("nan"), "max", "limit of nll"),
        ("accuracy", 0.8, "max", r"as higher is better, got 0\.8 as the highest value allowed.*--min accuracy=0\.8"),
        ("ece", 0.1, "min", "as lower is better"),
    ],
)
def test_a_limit_that_cannot_mean_what_it_says_is_refused(p, what, limit, side, says):
    sums = cal.Accumulator([what])
    sums.update(p)
    for ask in (lambda: cal.check(p, what, limit=limit, side=side), lambda: sums.check(what, limit=limit, side=side)):
        with pytest.raises(InputError, match=says):
            ask()


def test_a_worsening_beyond_the_bounds_is_refused(p):
    with pytest.raises(InputError, match=r"limit of ece: expected -1 to 1, got 5\. .*write 0\.05"):
        cal.check(p, "ece", limit=5, against=p)
    with pytest.raises(InputError, match="side: expected none with against"):
        cal.check(p, "ece", limit=0.05, against=p, side="max")


def test_the_side_of_a_limit_is_where_bad_values_are(p):
    assert cal.check(p, "accuracy", limit=0.1).side == "min"
    assert cal.check(p, "ece", limit=0.9).side == "max"
    assert cal.check(p, "gap", limit=0.9).side == "max"
    assert cal.check(p, "gap", limit=-0.9, side="min").state == "holds"
