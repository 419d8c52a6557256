"""`decide` and `evaluate`: costs by hand and by brute force, guarantees, held-out rows, and what is refused."""

import json

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant import InputError, LeakWarning, Predictions
from calibrant.deciding.costs import read_rule
from calibrant.deciding.policy import HAND_OVER


def rare(n=4000, seed=0, **more):
    rng = np.random.default_rng(seed)
    s = 1 / (1 + np.exp(-rng.normal(-3, 1.5, n)))
    return Predictions.binary(s, (rng.random(n) < s).astype(int), **more)


def classes(n=3000, seed=0, k=4):
    rng = np.random.default_rng(seed)
    z = 2.5 * rng.normal(size=(n, k))
    return Predictions.from_logits(z, (z + rng.gumbel(size=(n, k))).argmax(axis=1))


# -- by cost --------------------------------------------------------------------------------------


def test_costs_by_hand():
    p = Predictions.binary([0.05, 0.2, 0.6, 0.04], [1, 0, 1, 0])
    d = cal.decide(p, cost="fn=9,fp=1")
    assert d.threshold == pytest.approx(0.1)
    assert d(p).tolist() == [0, 1, 1, 0]
    chosen, hindsight, always, never = d.costs
    assert (chosen.cost, chosen.acted) == (pytest.approx((9 + 1) / 4), 0.5)
    assert chosen.expected == pytest.approx((0.05 * 9 + 0.8 + 0.4 + 0.04 * 9) / 4)
    assert (hindsight.threshold, hindsight.cost) == (0.05, 0.25)
    assert (always.cost, never.cost) == (0.5, 4.5)
    assert (always.more, never.more) == (-2.0, 2.0)


@pytest.mark.parametrize("cost", ["fn=7,fp=1", "fn=7,fp=1,abstain=0.4", "fn=1,fp=3,abstain=0.2", "wrong=4,abstain=0.3"])
def test_the_best_in_hindsight_is_the_best_of_all_thresholds(cost):
    p = rare(60, seed=5)
    rule = read_rule(cost)
    best = next(line for line in cal.decide(p, cost=cost).costs if line.choice == "hindsight")
    scores = np.append(np.unique(p.confidence if rule.fn is None else p.score), 2.0)
    tried = []
    for i, upper in enumerate(scores):
        for lower in scores[: i + 1] if rule.fn is not None and rule.abstain is not None else [upper]:
            if rule.fn is None:
                costs = np.where(p.confidence >= upper, ~p.correct * rule.wrong, rule.abstain)
            else:
                between = np.where(p.score >= lower, rule.abstain or 0.0, p.outcome * rule.fn)
                costs = np.where(p.score >= upper, ~p.outcome * rule.fp, between)
            tried.append(costs.mean())
    assert best.cost == pytest.approx(min(tried))


def test_costs_count_weights_and_clusters():
    w = np.random.default_rng(1).integers(0, 4, 500)
    weighted, repeated = rare(500, weights=w), rare(500).take(np.repeat(np.arange(500), w))
    for a, b in zip(*(cal.decide(p, cost="fn=20,fp=1").costs for p in (weighted, repeated)), strict=True):
        assert (a.threshold, a.cost, a.low, a.more_high) == pytest.approx((b.threshold, b.cost, b.low, b.more_high))
    twins = rare(500).take(np.repeat(np.arange(500), 2))
    together = Predictions.binary(twins.score, twins.labels, clusters=np.repeat(np.arange(500), 2))
    one, both = (cal.decide(p, cost="fn=20,fp=1").costs[0] for p in (rare(500), together))
    assert (both.low, both.high) == pytest.approx((one.low, one.high), rel=2e-3)  # a row told twice is no second row


def test_a_miss_that_was_not_seen_is_in_the_interval():
    """100 rows, all negative but the ten that are called: no miss was seen, and up to 3.6 % of rows may be one."""
    p = Predictions.binary(np.repeat([0.05, 0.9], [90, 10]), np.repeat([0, 1], [90, 10]))
    chosen, _, always, never = cal.decide(p, cost="fn=9,fp=1").costs
    unseen = 1 - 0.025 ** (1 / 100)
    assert (chosen.cost, chosen.low) == (0.0, 0.0)
    assert chosen.high == pytest.approx(9 * unseen)  # the dearest cost stands for all that were not seen
    assert (always.low, always.high) == pytest.approx(tuple(stats.binomtest(90, 100).proportion_ci()))
    assert (never.low, never.high) == pytest.approx(tuple(9 * end for end in stats.binomtest(10, 100).proportion_ci()))
    assert (never.more, never.more_low < 0.9 < never.more_high) == (pytest.approx(0.9), True)


def test_a_cost_matrix_over_classes():
    p = classes()
    matrix = 1 - np.eye(4)
    d = cal.decide(p, cost=matrix)
    assert d(p).tolist() == p.predicted.tolist()
    assert [line.choice for line in d.costs] == ["chosen", "likeliest", "one_class"]
    assert d.costs[2].cost == pytest.approx(1 - np.bincount(p.labels).max() / p.n)
    over = cal.decide(p, cost=np.column_stack([matrix, np.full(4, 0.2)]))
    assert (over(p) == HAND_OVER).mean() == over.costs[0].handed_over == (p.confidence < 0.8).mean()


def test_uncalibrated_scores_are_named():
    rng = np.random.default_rng(0)
    s = rng.beta(1, 20, 5000)
    p = Predictions.binary(s, (rng.random(5000) < np.minimum(3 * s, 1)).astype(int))
    assert "the scores are not calibrated for this" in cal.decide(p, cost="fn=10,fp=1").words
    m = cal.fit(p.take(np.arange(2500)), "beta")
    assert "agrees within noise" in cal.decide(p.take(np.arange(2500, 5000)), cost="fn=10,fp=1", map=m).words


# -- with a guarantee -----------------------------------------------------------------------------


def test_answers_with_a_guarantee():
    p, test = classes(), classes(seed=1)
    d = cal.decide(p, max_error=0.05, confidence=0.9)
    answered = d(p) != HAND_OVER
    assert (d(p)[answered] == p.predicted[answered]).all()
    assert d.answered.share == answered.mean()
    assert d.answered.error == pytest.approx((~p.correct[answered]).mean())
    assert d.answered.error < 0.05
    assert [s.max_error for s in d.shares] == [0.01, 0.02, 0.05, 0.1]
    judged = cal.evaluate(d, test)
    kept = d(test) != HAND_OVER
    assert judged.answered.error == pytest.approx((~test.correct[kept]).mean())
    assert judged.outcome == "holds"
    assert "guaranteed with 90 % confidence" in d.words


def test_precision_with_a_guarantee():
    p = rare(6000)
    d = cal.decide(p, min_precision=0.3)
    called = d(p) == 1
    assert set(d(p)) == {0, 1}
    assert 1 - d.answered.error == pytest.approx(p.outcome[called].mean())
    assert d.answered.error < 0.7
    assert d.answered.recall == pytest.approx(p.outcome[called].sum() / p.outcome.sum())


def test_what_is_not_possible_hands_over_all_and_says_what_is_needed():
    d = cal.decide(classes(100), max_error=0.02)
    assert not d.possible
    assert set(d(classes(50, seed=9))) == {HAND_OVER}
    assert d.words.startswith("Not possible with these 100 rows")
    assert "More rows alone may not help" in d.words
    assert "more rows would be needed" in cal.decide(classes(500), max_error=0.02).words
    assert cal.evaluate(d, classes(60, seed=4)).outcome is None


def test_a_map_that_keeps_the_order_answers_the_same_rows():
    p, fit_on = rare(4000, seed=2), rare(1000, seed=3)
    d = cal.decide(p, max_error=0.05, map=cal.fit(fit_on, "temperature"))
    assert all(row.before == row.after for row in d.shares)
    assert any(row.before > 0 for row in d.shares)


def test_rows_that_fitted_the_map_are_refused():
    p = rare()
    m = cal.fit(p, "beta")
    for q, kwargs in ((p, {"map": m}), (_quietly(m, p), {})):
        with pytest.raises(InputError, match="fitted on about 100 %"):
            cal.decide(q, max_error=0.05, **kwargs)
        with pytest.warns(LeakWarning, match="optimistic"):
            cal.decide(q, cost="fn=9,fp=1", **kwargs)


def _quietly(m, p):
    with pytest.warns(LeakWarning):
        return m(p)


def test_test_rows_that_decided_are_named():
    p = rare()
    d = cal.decide(p, max_error=0.05)
    with pytest.warns(LeakWarning, match="100 % of these rows"):
        cal.evaluate(d, p)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "expected one of cost, max_error and min_precision, got none"),
        ({"cost": "fn=1,fp=1", "max_error": 0.1}, "got cost and max_error"),
        ({"max_error": 0.0}, "strictly between 0 and 1"),
        ({"max_error": 2}, "0.02 for 2 %"),
        ({"min_precision": 1.0}, "0.9 for 90 %"),
        ({"max_error": 0.1, "confidence": 1.0}, "confidence"),
        ({"max_error": float("nan")}, "strictly between"),
    ],
)
def test_bad_wishes_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        cal.decide(rare(100), **options)


def test_bad_rows_are_refused():
    with pytest.raises(InputError, match="negative ones only"):
        cal.decide(Predictions.binary([0.1, 0.2, 0.3], [0, 0, 0]), cost="fn=1,fp=1")
    with pytest.raises(InputError, match="min_precision: expected scores of the positive class"):
        cal.decide(classes(60), min_precision=0.9)
    with pytest.raises(InputError, match="rows without labels"):
        cal.decide(Predictions.binary([0.1, 0.2], None), cost="fn=1,fp=1")
    with pytest.raises(InputError, match="got a threshold"):
        cal.decide(classes(60), cost="threshold=0.9")


def test_single_rows_as_clusters_are_independent():
    assert cal.decide(rare(clusters=np.arange(4000)), max_error=0.1).possible


def test_a_guarantee_counts_clusters_and_weights():
    """Rows told five times answer no more than once; weights that are shares are averaged by."""
    p = rare(2000)
    alone = cal.decide(p, max_error=0.05)
    again = Predictions.binary(np.repeat(p.score, 5), np.repeat(p.labels, 5), clusters=np.repeat(np.arange(2000), 5))
    together = cal.decide(again, max_error=0.05)
    assert 0.5 < together.answered.share <= alone.answered.share
    assert together.answered.error == pytest.approx((~again.correct[together(again) != HAND_OVER]).mean())
    assert together.notes == ("Rows come in 2,000 clusters, which the guarantee counts as wholes.",)
    assert all(0 <= row.before <= 1 for row in together.shares)
    w = np.random.default_rng(1).gamma(4, 0.25, 2000)
    weighed = cal.decide(rare(2000, weights=w), max_error=0.05)
    kept = weighed(p) != HAND_OVER
    assert weighed.answered.share == pytest.approx(w[kept].sum() / w.sum())
    assert 0.5 < weighed.answered.share < alone.answered.share
    assert "by weight" in weighed.notes[0]
    few = cal.decide(
        Predictions.binary(np.linspace(0, 0.2, 300), np.arange(300) == 9, clusters=np.arange(300) // 10), max_error=0.05
    )
    assert (few.possible, few.words.startswith("Not possible with these 300 rows")) == (False, True)
    assert few.rows_needed > 300


# -- on disk --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wish",
    [
        {"cost": "fn=9,fp=1,abstain=0.2"},
        {"cost": [[0, 1, 0.3], [5, 0, 0.3]]},
        {"max_error": 0.05},
        {"min_precision": 0.3},
        {"max_error": 1e-5},
    ],
)
def test_a_decision_is_the_same_after_a_file(tmp_path, wish):
    p, new = rare(), rare(200, seed=7)
    d = cal.decide(p, map=cal.fit(rare(500, seed=8), "isotonic"), **wish)
    d.save(tmp_path / "d.json")
    again = cal.load_decision(tmp_path / "d.json")
    assert again.to_dict() == d.to_dict()
    assert again(new).tolist() == d(new).tolist() == d(new.score).tolist()
    assert cal.evaluate(again, new).to_dict() == cal.evaluate(d, new).to_dict()


def test_another_task_is_refused():
    d = cal.decide(rare(), cost="fn=9,fp=1")
    with pytest.raises(InputError, match="expected predictions of the task binary"):
        d(classes(60))
    with pytest.raises(InputError, match="one score per row"):
        d([[0.2, 0.8]])


@pytest.mark.parametrize(
    "change",
    [
        {"aim": "luck"},
        {"policy": {"acts": "positive", "threshold": 2, "lower": None, "matrix": None}},
        {"policy": {"acts": "positive", "threshold": 0.1, "lower": 0.2, "matrix": None}},
        {"policy": {"acts": "least_cost", "threshold": None, "lower": None, "matrix": [[1, 2, 3]]}},
        {"policy": {"acts": "least_cost", "threshold": None, "lower": None, "matrix": None}},
        {"costs": [{"choice": "chosen"}]},
        {"n": "many"},
        {"calibrant_decision": 2},
        {"map": {}},
        {"settings": None},
    ],
)
def test_damaged_files_are_refused(tmp_path, change):
    state = cal.decide(rare(200), cost="fn=9,fp=1").to_dict() | change
    (tmp_path / "d.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match=r"d\.json"):
        cal.load_decision(tmp_path / "d.json")


def test_a_map_is_no_decision(tmp_path):
    cal.fit(rare(200), "beta").save(tmp_path / "m.json")
    with pytest.raises(InputError, match="written by calibrant decide"):
        cal.load_decision(tmp_path / "m.json")
