"""Measures of many models at once: the values of the measures, and noise that is that of a bootstrap over questions."""

import numpy as np
import pytest
from board_tables import answers, messy

import calibrant as cal
from calibrant.core.curves.ranking import answered_at_error
from calibrant.core.statistics.estimate import subtract
from calibrant.measuring.answer_table import read_answers
from calibrant.measuring.model_noise import MEASURES, Answers, QuestionDraws, measure_models

LIBRARY = {"ece": "ece", "auroc_correct": "auroc_correct", "accuracy": "accuracy"}


def given(table, column="stated"):
    read = read_answers(table, confidence=[column])
    return Answers(read.confidence[column], read.correct, read.used(column))


def predictions(a, i):
    rows = np.flatnonzero(a.used[i])
    return cal.Predictions.from_confidence(a.confidence[i, rows], a.correct[i, rows].astype(int))


@pytest.mark.parametrize("column", ["stated", "tokens"])
def test_values_are_those_of_the_measures_and_intervals_nearly(column):
    a = given(messy() if column == "stated" else answers(), column)
    measured = measure_models(a, QuestionDraws(600, 1))
    for i in range(len(a.used)):
        if not a.used[i].any():
            assert all(np.isnan(measured[name][i].value) for name in MEASURES)
            continue
        for name, estimates in measured.items():
            if name in LIBRARY:
                one = cal.measure(predictions(a, i), LIBRARY[name])
                assert estimates[i].value == pytest.approx(one.value, abs=1e-12)
                assert estimates[i].limits() == pytest.approx((one.low, one.high), abs=0.25 * (one.high - one.low))


def slow_share(scores, hits, most):
    shares = [0.0]
    for t in np.unique(scores):
        kept = scores >= t
        if (hits[kept] == 0).mean() <= most + 1e-12:
            shares.append(kept.mean())
    return max(shares)


@pytest.mark.parametrize("column", ["stated", "tokens"])
def test_the_share_answered_is_the_largest_with_few_enough_errors(column):
    a = given(answers(), column)
    answered = measure_models(a, QuestionDraws(600), max_error=0.2, measures=("answered",))["answered"]
    for i, e in enumerate(answered):
        assert e.value == pytest.approx(slow_share(a.confidence[i], a.correct[i], 0.2))
        assert e.limits()[0] <= e.value <= e.limits()[1]
    assert max(e.value for e in answered) > 0.1


def test_ties_are_answered_whole_or_not_at_all():
    share = answered_at_error(
        np.array([[0.0, 0.0], [19.0, 5.0], [18.0, 5.0]]), np.array([[0.0, 0.0], [1.0, 5.0], [2.0, 5.0]]), 0.05
    )
    assert share.tolist() == [0.0, 20 / 30, 0.0]


def test_differences_have_the_noise_of_a_paired_bootstrap():
    a = given(answers(400))
    measured = measure_models(a, QuestionDraws(400, 3), measures=("auroc_correct", "accuracy", "ece"))
    rng = np.random.default_rng(5)
    draws = {name: [] for name in measured}
    for _ in range(300):
        rows = rng.integers(400, size=400)
        pair = [cal.Predictions.from_confidence(a.confidence[i, rows], a.correct[i, rows].astype(int)) for i in (0, 1)]
        for name in draws:
            draws[name].append(np.subtract(*(cal.measures.make(name)(p) for p in reversed(pair))))
    for name, estimates in measured.items():
        low, high = subtract(*estimates[:2]).limits()
        assert (high - low) / 3.92 == pytest.approx(np.std(draws[name]), rel=0.25)
    alone = measure_models(a, QuestionDraws(400, 3), measures=("accuracy",))["accuracy"]
    a_noise, b_noise = (e.noise.upper for e in alone[:2])
    assert (b_noise - a_noise).std() < 0.95 * np.hypot(a_noise.std(), b_noise.std())


def test_the_same_seed_gives_the_same_noise():
    a = given(answers(80))
    one, two, three = (measure_models(a, QuestionDraws(80, seed))["ece"][0].noise.upper for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != three).any()
