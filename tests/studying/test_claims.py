"""Claims: the interval is that of a paired t-test, corrected for their number; verdicts follow from it alone."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from calibrant.studying.claims import judge, judge_all, standard_error
from calibrant.studying.plan import Claim, Method, Plan

MEASURE = {"measure": "ece", "set": "test", "calibrator": "identity", "rescorer": "", "n": 10, "k": 2, "why": ""}


def plan(*claims, data=("a", "b")):
    grid = {"data": list(data), "seed": [1, 2, 3, 4, 5]}
    return Plan("t", "meta", grid=grid, methods={"CE": Method(), "ours": Method()}, claim=list(claims))


def rows(ours, ce, data=("a",)):
    found = []
    for d in data:
        for seed, (x, y) in enumerate(zip(ours, ce, strict=True), 1):
            found += [
                {"method": m, "data": d, "seed": seed, "value": v, **MEASURE} for m, v in (("ours", x), ("CE", y))
            ]
    return pl.DataFrame(found)


CLAIM = Claim("ours is lower", of="ours", measure="ece", is_="lower", against="CE")


def test_one_cell_is_a_paired_t_test():
    rng = np.random.default_rng(0)
    ours, ce = rng.normal(0.03, 0.01, 5), rng.normal(0.05, 0.01, 5)
    found = judge(CLAIM, plan(CLAIM), rows(ours, ce), 0.05)
    expected = stats.ttest_rel(ours, ce).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.difference == pytest.approx(np.mean(ours - ce))
    assert (found.pairs, set(found.by_cell)) == (5, {"a"})


def test_the_more_claims_the_wider():
    ours, ce = np.array([3, 4, 3, 5, 4]) / 100, np.array([5, 5, 6, 5, 6]) / 100
    alone = judge_all(plan(CLAIM), rows(ours, ce))[0]
    many = judge_all(plan(*[CLAIM] * 20), rows(ours, ce))[0]
    assert many.low < alone.low < alone.high < many.high
    assert (alone.verdict, many.verdict) == ("held", "cannot be told")
    assert alone.detectable > alone.high - alone.difference


def test_claims_that_no_run_speaks_of_widen_nothing():
    ours, ce = np.array([3, 4, 3, 5, 4]) / 100, np.array([5, 5, 6, 5, 6]) / 100
    elsewhere = Claim("on c", of="ours", measure="ece", is_="lower", against="CE", where={"data": ["c"]})
    alone, other = judge_all(plan(CLAIM), rows(ours, ce))[0], judge_all(plan(CLAIM, elsewhere), rows(ours, ce))
    assert (other[0].low, other[0].high) == (alone.low, alone.high)
    assert other[1].verdict == "not run"


def test_cells_are_pooled_with_one_variance():
    a, b = np.array([0.0, 2.0, 4.0]), np.array([10.0, 14.0])
    error, freedom = standard_error([a, b])
    variance = (a.var(ddof=1) * 2 + b.var(ddof=1)) / 3
    assert (error, freedom) == (pytest.approx(np.sqrt(variance / 3 + variance / 2) / 2), 3)


@pytest.mark.parametrize(
    ("is_", "shift", "verdict"),
    [("lower", -1, "held"), ("lower", 1, "did not hold"), ("higher", 1, "held"), ("higher", -1, "did not hold")],
)
def test_sides(is_, shift, verdict):
    claim = Claim("c", of="ours", measure="ece", is_=is_, against="CE")
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05]) / 100
    assert judge(claim, plan(claim), rows(0.5 + shift / 10 + noise, np.full(5, 0.5))).verdict == verdict


@pytest.mark.parametrize(("apart", "verdict"), [(0.0, "held"), (0.05, "did not hold"), (0.01, "cannot be told")])
def test_equal_means_within(apart, verdict):
    claim = Claim("c", of="ours", measure="ece", is_="equal", against="CE", within=0.01)
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05]) / 100
    assert judge(claim, plan(claim), rows(0.5 + apart + noise, np.full(5, 0.5))).verdict == verdict


def test_against_a_number_and_where():
    claim = Claim("c", of="CE", measure="ece", is_="higher", than=0.2, where={"data": ["b"]})
    table = pl.concat(
        [rows(np.full(5, 0.1), np.linspace(0.1, 0.11, 5)), rows([0.1] * 5, [0.3, 0.31, 0.32, 0.3, 0.3], ["b"])]
    )
    found = judge(claim, plan(claim), table)
    assert (found.verdict, set(found.by_cell)) == ("held", {"b"})


def test_one_seed_and_no_rows_cannot_be_told():
    one = judge(CLAIM, plan(CLAIM), rows([0.1], [0.2]))
    assert (one.verdict, one.low, one.difference) == ("cannot be told", None, pytest.approx(-0.1))
    assert judge(CLAIM, plan(CLAIM), rows([0.1], [0.2]).filter(pl.col("method") == "CE")).verdict == "not run"


def test_a_wrong_verdict_is_rare():
    """Of studies in which nothing differs, at most the level calls any of ten claims."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        values = [judge(CLAIM, plan(CLAIM), rows(*rng.normal(size=(2, 5))), 0.05 / 5) for _ in range(5)]
        wrong += any(f.verdict in ("held", "did not hold") for f in values)
    assert wrong <= 22  # 5 % of 200 is 10; more than 22 has a chance of 1 in 5,000
