"""Comparisons: of distances from zero, of models joined by id, and of too few rows."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError


def with_gaps(gap_a, gap_b, seed, n=1000):
    """Two models whose mean confidence is off by these gaps, on the same rows."""
    rng = np.random.default_rng(seed)
    true = rng.uniform(0.2, 0.8, n)
    correct = rng.random(n) < true
    return tuple(cal.Predictions.from_confidence(true + gap, correct) for gap in (gap_a, gap_b))


def test_gaps_of_opposite_sign_and_equal_size_have_no_winner():
    results = [cal.compare(*with_gaps(-0.078, 0.078, seed), "gap", resamples=200) for seed in range(40)]
    assert sum(c.better != "neither" for c in results) <= 5
    assert all(c.low <= c.difference <= c.high for c in results)


def test_the_difference_of_gaps_is_that_of_their_distances_from_zero():
    c = cal.compare(*with_gaps(-0.15, 0.02, 0), "gap", resamples=200)
    assert c.difference == pytest.approx(abs(c.b) - abs(c.a))
    assert c.better == "b"
    assert c.high < 0
    assert c.p_value < 0.05
    assert "distances from 0" in c.definition


def test_the_interval_of_the_distances_holds_the_truth():
    covered = 0
    for seed in range(100):
        c = cal.compare(*with_gaps(-0.03, 0.05, seed), "gap", resamples=200)
        covered += c.low <= 0.02 <= c.high
    assert covered >= 89


def test_a_table_over_seeds_compares_distances_from_zero():
    low, high = ([with_gaps(-0.078, 0.078, seed)[side] for seed in range(6)] for side in (0, 1))
    results = cal.table({"low": low, "high": high}, ["gap"])
    cells = {name: row[0] for name, row in results.lines.items()}
    loser = next(cell for cell in cells.values() if not cell.best)
    assert loser.p_value > 0.05


def test_models_that_know_only_their_own_correctness_are_paired_by_id():
    rng = np.random.default_rng(0)
    skill = rng.random(300)
    ids = np.array([f"q{i}" for i in range(300)])
    a = cal.Predictions.from_confidence(np.full(300, 0.7), skill < 0.7, ids=ids)
    order = rng.permutation(300)[:280]
    b = cal.Predictions.from_confidence(np.full(280, 0.7), skill[order] < 0.6, ids=ids[order])
    c = cal.compare(a, b, "accuracy", resamples=500)
    assert (c.n, c.only_in_a, c.only_in_b) == (280, 20, 0)
    assert c.difference == pytest.approx((skill[order] < 0.6).mean() - (skill[order] < 0.7).mean())
    assert c.better == "a"
    assert c.matched_by == "ids"
    assert cal.compare(a, a, "accuracy", resamples=50, paired=False).matched_by is None


def test_labels_that_differ_are_still_refused_where_they_are_the_truth():
    a = cal.Predictions.binary([0.9, 0.2, 0.4], [1, 0, 1])
    b = cal.Predictions.binary([0.9, 0.2, 0.4], [1, 0, 0])
    with pytest.raises(InputError, match="1 different ones"):
        cal.compare(a, b)


def test_ids_without_a_common_one_are_refused():
    a, b = (cal.Predictions.from_confidence([0.9, 0.8], [1, 0], ids=ids) for ids in (["x", "y"], ["u", "v"]))
    with pytest.raises(InputError, match="some that are in both"):
        cal.compare(a, b)


def test_too_few_rows_give_no_interval_and_no_winner():
    a = cal.Predictions.from_confidence([0.9, 0.8], [1, 1])
    b = cal.Predictions.from_confidence([0.1, 0.2], [1, 1])
    c = cal.compare(a, b, "brier")
    assert (c.to_dict()["low"], c.to_dict()["p_value"], c.better) == (None, None, "neither")
    assert "too few rows" in c.reason


@pytest.mark.parametrize("what", ["accuracy", "ece", "nll", "auroc_correct"])
def test_too_few_rows_have_a_value_without_an_interval(what):
    p = cal.Predictions.from_confidence([0.9, 0.8], [1, 0])
    m = cal.measure(p, what)
    assert (m.low, m.high, m.interval) == (None, None, None)
    assert m.reason == "too few rows for an interval: 2, at least 10 are needed"


def test_one_row_that_carries_all_weight_counts_as_one():
    p = cal.Predictions.from_confidence(np.full(50, 0.7), np.arange(50) % 2, weights=[1e9] + [0.1] * 49)
    assert cal.measure(p, "accuracy").reason.startswith("too few rows")


def test_clusters_are_counted_instead_of_rows():
    p = cal.Predictions.from_confidence(np.full(50, 0.7), np.arange(50) % 2, clusters=np.arange(50) % 5)
    assert cal.measure(p, "accuracy").reason == "too few clusters for an interval: 5, at least 10 are needed"
