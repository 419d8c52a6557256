"""Transfer of repairs: means of calibration errors, against a slow version."""

import numpy as np
import pytest
from board_tables import answers

import calibrant as cal
from calibrant.measuring.answer_table import read_answers
from calibrant.measuring.model_noise import Answers, QuestionDraws
from calibrant.reporting.board.repair import judged_half, repair
from calibrant.reporting.board.transfer import between_groups, between_models

OPTIONS = {"bins": 15, "level": 0.95}


@pytest.fixture(scope="module")
def case():
    read = read_answers(answers(400), confidence=["stated"], group="category")
    a = Answers(read.confidence["stated"], read.correct, read.used("stated"))
    judged = judged_half(400, 0)
    return read, a, judged, repair(a, judged, "platt"), QuestionDraws(400)


def predictions(a, i, rows):
    return cal.Predictions.from_confidence(a.confidence[i, rows], a.correct[i, rows].astype(int))


def test_between_models(case):
    read, a, judged, repaired, draws = case
    transfer = between_models(a, repaired.maps, judged, read.models, draws, **OPTIONS)
    ece, n = cal.measures.make("ece"), len(read.models)
    slow = np.empty((n, n))
    for learned in range(n):
        fitted = cal.fit(predictions(a, learned, ~judged), "platt")
        for i in range(n):
            slow[learned, i] = ece(fitted(predictions(a, i, judged)))
    before = np.array([ece(predictions(a, i, judged)) for i in range(n)])
    other = ~np.eye(n, dtype=bool)
    np.testing.assert_allclose(transfer.matrix, slow, atol=1e-10)
    assert transfer.own == pytest.approx(np.diag(slow).mean())
    assert transfer.none == pytest.approx(before.mean())
    assert transfer.other == pytest.approx(slow[other].mean())
    assert transfer.helps == pytest.approx((slow < before)[other].mean())
    assert transfer.other_minus_own.value == pytest.approx(transfer.other - transfer.own)
    assert transfer.other_minus_own.low < transfer.other_minus_own.value < transfer.other_minus_own.high


def test_between_groups(case):
    read, a, judged, repaired, draws = case
    transfer = between_groups(a, repaired.maps, judged, read.group_of, read.groups, "platt", draws, **OPTIONS)
    ece, n = cal.measures.make("ece"), len(read.models)
    slow, pooled = np.zeros((3, 3)), []
    for i in range(n):
        for g in range(3):
            inside = read.group_of == g
            fitted = cal.fit(predictions(a, i, inside & ~judged), "platt")
            pooled.append(ece(cal.fit(predictions(a, i, ~judged), "platt")(predictions(a, i, inside & judged))))
            for to in range(3):
                slow[g, to] += ece(fitted(predictions(a, i, (read.group_of == to) & judged))) / n
    np.testing.assert_allclose(transfer.matrix, slow, atol=1e-10)
    assert transfer.pooled == pytest.approx(np.mean(pooled))
    assert transfer.own == pytest.approx(np.diag(slow).mean())


def test_the_interval_of_a_mean_is_that_of_a_bootstrap(case):
    read, a, judged, repaired, draws = case
    transfer = between_models(a, repaired.maps, judged, read.models, draws, **OPTIONS)
    ece, rng, n = cal.measures.make("ece"), np.random.default_rng(2), len(read.models)
    rows = np.flatnonzero(judged)
    results = []
    for _ in range(150):
        again = rng.choice(rows, len(rows))
        tests = [predictions(a, i, again) for i in range(n)]
        none = np.mean([ece(p) for p in tests])
        other = np.mean([ece(m.apply(tests[i])) for i in range(n) for j, m in enumerate(repaired.maps) if j != i])
        results.append(other - none)
    width = transfer.other_minus_none.high - transfer.other_minus_none.low
    assert width / 3.92 == pytest.approx(np.std(results), rel=0.35)
