"""Rows answered with a guarantee: a slow second implementation, ties, counts, and power (docs/methods/deciding.md)."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import WeightedCurve
from calibrant.core.statistics.error_guarantee import answered_rows, at_least, lower_slightly


def rows(n, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    s = rng.beta(5, 1.2, n)
    y = rng.random(n) < s
    return (s if digits is None else np.round(s, digits)), y


def slow(scores, correct, most, confidence):
    """How many rows, by loops: four starts, each walking while the binomial tail stays below its share of delta."""
    alpha, n = (1 - confidence) / 4, len(scores)
    least = int(np.ceil(np.log(alpha) / np.log(1 - most)))
    best = 0
    if n < least:
        return best
    descending = np.sort(scores)[::-1]
    for j in range(4):
        m = int(np.ceil(least * (n / least) ** (j / 3) - 1e-9))
        while True:
            m = min(m, n)
            reached = scores >= descending[m - 1]  # ties are taken whole
            if binom.cdf((~correct[reached]).sum(), reached.sum(), most) > alpha:
                break
            best = max(best, int(reached.sum()))
            if m == n:
                break
            m += max(1, round(n / 100))
    return best


@pytest.mark.parametrize("most", [0.03, 0.1, 0.2])
@pytest.mark.parametrize(("n", "digits"), [(90, None), (700, None), (3000, None), (700, 2), (3000, 1)])
def test_a_slow_version_answers_the_same_rows(n, digits, most):
    scores, correct = rows(n, seed=n, digits=digits)
    answered = answered_rows(Curve.sort(scores, correct), most, 0.9)
    assert answered.n == slow(scores, correct, most, 0.9)
    assert at_least(scores, answered.threshold).sum() == answered.n
    assert (~correct[at_least(scores, answered.threshold)]).sum() == answered.errors


def test_weights_count_rows():
    scores, correct = rows(400, seed=3)
    w = np.random.default_rng(3).integers(0, 5, 400)
    counted = answered_rows(WeightedCurve.weigh(scores, correct, w.astype(float)), 0.1, 0.9)
    repeated = answered_rows(Curve.sort(np.repeat(scores, w), np.repeat(correct, w)), 0.1, 0.9)
    assert counted == repeated
    assert counted.n > 0


def test_scores_that_differ_in_the_last_bits_are_equal():
    scores = np.concatenate([np.full(300, 0.9), np.full(300, np.nextafter(0.9, 0)), np.full(50, 0.2)])
    correct = np.concatenate([np.ones(300), np.zeros(300), np.ones(50)]).astype(bool)
    assert answered_rows(Curve.sort(scores, correct), 0.05, 0.95).threshold is None
    assert at_least(np.array([0.9, np.nextafter(0.9, 0), 0.8999]), 0.9).tolist() == [True, True, False]
    assert lower_slightly(0.0) == 0.0


def test_not_possible_says_how_many_rows_would_be_needed():
    perfect = Curve.sort(np.linspace(0.5, 1, 60), np.ones(60))
    few = answered_rows(perfect, 0.02, 0.95)
    assert (few.threshold, few.n, few.share) == (None, 0, 0.0)
    assert few.rows_needed is not None
    assert few.rows_needed >= 217  # ln(0.0125) / ln(0.98): without a single error
    hopeless = answered_rows(Curve.sort(np.linspace(0.5, 1, 500), np.arange(500) % 2), 0.05, 0.95)
    assert (hopeless.threshold, hopeless.rows_needed) == (None, None)


@pytest.mark.parametrize(("most", "n", "share"), [(0.05, 10_000, 0.244), (0.1, 2000, 0.488), (0.1, 10_000, 0.567)])
def test_as_many_rows_are_answered_as_the_method_is_known_for(most, n, share):
    """docs/methods/deciding.md: mean of 200 sets; 30 here."""
    sets = (Curve.sort(*rows(n, seed=seed)) for seed in range(30))
    assert np.mean([answered_rows(curve, most, 0.95).share for curve in sets]) == pytest.approx(share, rel=0.1)


def test_two_right_rows_are_too_few_and_do_not_err_too_often():
    answered = answered_rows(Curve.sort(np.array([0.6, 0.9]), np.ones(2)), 0.1, 0.95)
    assert answered.threshold is None
    assert answered.rows_needed == 42  # (1 - 0.1) ** 42 is the first power below 0.05 / 4, the level of each start
