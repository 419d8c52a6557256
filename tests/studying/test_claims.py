"""Claims: paired t intervals of cells, Welch and Satterthwaite over cells, order statistics over several rivals."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from calibrant.studying.claims import decide_claim, decide_claims, noncentrality, settling_seeds, standard_error
from calibrant.studying.plan import Claim, Method, Plan

MEASURE = {"measure": "ece", "set": "test", "calibrator": "identity", "rescorer": "", "n": 10, "k": 2, "why": ""}


def plan(*claims, data=("a", "b")):
    grid = {"data": list(data), "seed": [1, 2, 3, 4, 5]}
    return Plan(title="t", base="meta", grid=grid, methods={"CE": Method(), "ours": Method()}, claim=list(claims))


def rows(ours, ce, data=("a",)):
    results = []
    for d in data:
        for seed, (x, y) in enumerate(zip(ours, ce, strict=True), 1):
            results += [
                {"method": m, "data": d, "seed": seed, "value": v, **MEASURE} for m, v in (("ours", x), ("CE", y))
            ]
    return pl.DataFrame(results)


CLAIM = Claim(says="ours is lower", of="ours", measure="ece", is_="lower", against="CE")


def test_one_cell_is_a_paired_t_test():
    rng = np.random.default_rng(0)
    ours, ce = rng.normal(0.03, 0.01, 5), rng.normal(0.05, 0.01, 5)
    finding = decide_claim(CLAIM, plan(CLAIM), rows(ours, ce), 0.05)
    expected = stats.ttest_rel(ours, ce).confidence_interval(0.95)
    assert (finding.overall.low, finding.overall.high) == pytest.approx((expected.low, expected.high))
    assert finding.overall.difference == pytest.approx(np.mean(ours - ce))
    assert (finding.overall.pairs, [name for name, _ in finding.cells]) == (5, ["a"])


def test_the_more_claims_the_wider():
    ours, ce = np.array([3, 4, 3, 5, 4]) / 100, np.array([5, 5, 6, 5, 6]) / 100
    alone = decide_claims(plan(CLAIM), rows(ours, ce))[0]
    many = decide_claims(plan(*[CLAIM] * 20), rows(ours, ce))[0]
    assert many.overall.low < alone.overall.low < alone.overall.high < many.overall.high
    assert (alone.verdict, many.verdict) == ("held", "inconclusive")
    assert (alone.claims, many.claims) == (1, 20)
    assert alone.overall.detectable > alone.overall.high - alone.overall.difference


def test_claims_that_no_run_speaks_of_widen_nothing():
    ours, ce = np.array([3, 4, 3, 5, 4]) / 100, np.array([5, 5, 6, 5, 6]) / 100
    elsewhere = Claim(says="on c", of="ours", measure="ece", is_="lower", against="CE", where={"data": ["c"]})
    alone, other = decide_claims(plan(CLAIM), rows(ours, ce))[0], decide_claims(plan(CLAIM, elsewhere), rows(ours, ce))
    assert other[0].overall == alone.overall
    assert other[1].verdict == "not run"


def test_the_mean_over_cells_is_welchs():
    """With two cells and a sign turned, the mean of differences is Welch's two-sample test."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.01, 0.004, 5), rng.normal(0.02, 0.02, 7)
    error, freedom = standard_error([a, b])
    welch = stats.ttest_ind(a, -b, equal_var=False)
    assert freedom == pytest.approx(welch.df)
    assert (a.mean() + b.mean()) / 2 / error == pytest.approx(welch.statistic)


def test_welch_covers_where_one_variance_does_not():
    """Cells whose variances differ by 12 and have few seeds: intervals of 95 % hold the truth in about 95 %."""
    rng = np.random.default_rng(5)
    welch = pooled = 0
    for _ in range(3000):
        a, b = rng.normal(0, 1.0, 12), rng.normal(0, 3.5, 5)
        mean = (a.mean() + b.mean()) / 2
        error, freedom = standard_error([a, b])
        welch += abs(mean) <= stats.t.ppf(0.975, freedom) * error
        variance = (a.var(ddof=1) * 11 + b.var(ddof=1) * 4) / 15
        pooled += abs(mean) <= stats.t.ppf(0.975, 15) * np.sqrt(variance / 12 + variance / 5) / 2
    assert 0.935 <= welch / 3000 <= 0.965
    assert pooled / 3000 < 0.90


@pytest.mark.parametrize(("level", "seeds"), [(0.05, 5), (0.001, 5), (0.001, 20)])
def test_what_could_be_seen_is_seen_four_times_in_five(level, seeds):
    """By drawing paired differences whose true mean is the detectable one."""
    rng = np.random.default_rng(6)
    shift = noncentrality(level, seeds - 1) / np.sqrt(seeds)
    draws = rng.normal(shift, 1.0, (20_000, seeds))
    t = draws.mean(1) / (draws.std(1, ddof=1) / np.sqrt(seeds))
    assert np.mean(t > stats.t.ppf(1 - level / 2, seeds - 1)) == pytest.approx(0.8, abs=0.012)


@pytest.mark.parametrize(("is_", "within", "mean"), [("lower", 0.0, -0.5), ("higher", 0.0, -0.5), ("equal", 1.2, 0.7)])
def test_the_seeds_that_would_settle_a_claim_settle_it_four_times_in_five(is_, within, mean):
    """By drawing two cells with the variances and the mean that were seen, with so many seeds; one fewer is too few."""
    claim, level = Claim(says="c", of="a", measure="ece", is_=is_, against="b", within=within), 0.01
    seen = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    n = settling_seeds(claim, [mean + seen[:, None], mean + 3 * seen[:, None]], level)
    rng, spread = np.random.default_rng(9), float(seen.std(ddof=1))
    settled = {}
    for seeds in (n, n // 2):
        cells = [rng.normal(mean, scale * spread, (4000, seeds)) for scale in (1, 3)]
        results = [standard_error(pair) for pair in zip(*cells, strict=True)]
        means = (cells[0].mean(1) + cells[1].mean(1)) / 2
        reach = np.array([stats.t.ppf(1 - level / 2, freedom) * error for error, freedom in results])
        inside = np.abs(means) + reach <= within
        settled[seeds] = np.mean(inside if is_ == "equal" else np.abs(means) > reach)
    assert settled[n] == pytest.approx(0.8, abs=0.025)
    assert settled[n // 2] < 0.6


def test_seeds_to_settle_are_for_inconclusive_claims_with_an_interval():
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05])
    one, two = (decide_claim(CLAIM, plan(CLAIM), rows(0.5 + shift + noise, np.full(5, 0.5))) for shift in (-0.5, -0.01))
    assert (one.verdict, one.seeds_to_settle) == ("held", None)
    assert (two.verdict, two.to_dict()["seeds_to_settle"]) == ("inconclusive", two.seeds_to_settle)
    assert two.seeds_to_settle > 100
    assert decide_claim(CLAIM, plan(CLAIM), rows([0.1], [0.2])).seeds_to_settle is None
    assert decide_claim(CLAIM, plan(CLAIM), rows([0.1, 0.2], [0.2, 0.1])).seeds_to_settle is None  # a difference of 0


def cells_of(**differences):
    """Rows of two data sets whose paired differences are these."""
    tables = [rows(0.5 + np.array(d), np.full(len(d), 0.5), [name]) for name, d in differences.items()]
    return pl.concat(tables)


def test_cells_of_opposite_sign_depend_on_the_data_set():
    """Focal loss: -10.4 points on CIFAR-10 and +3.8 on Fashion average to "lower"."""
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05]) / 100
    finding = decide_claim(CLAIM, plan(CLAIM), cells_of(a=-0.104 + noise, b=0.038 + noise))
    assert finding.verdict == "depends on the data set"
    assert {name: round(cell.difference, 3) for name, cell in finding.cells} == {"a": -0.104, "b": 0.038}
    assert decide_claim(CLAIM, plan(CLAIM), cells_of(a=-0.104 + noise, b=-0.038 + noise)).verdict == "held"


def test_opposite_differences_do_not_average_to_equal():
    claim = Claim(says="c", of="ours", measure="ece", is_="equal", against="CE", within=0.01)
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05]) / 100
    assert (
        decide_claim(claim, plan(claim), cells_of(a=0.05 + noise, b=-0.05 + noise)).verdict == "depends on the data set"
    )


def ranked(rank, is_="lower"):
    methods = {name: Method() for name in ("ours", "x", "y", "z")}
    claim = Claim(says="c", of="ours", measure="ece", is_=is_, among=["x", "y", "z"], rank=rank)
    return Plan(title="t", base="meta", grid={"data": ["a"], "seed": [1, 2, 3, 4, 5]}, methods=methods, claim=[claim])


def ranked_rows(**means):
    noise = {name: np.random.default_rng(len(name) + ord(name[0])).normal(0, 0.001, 5) for name in means}
    results = [
        {"method": name, "data": "a", "seed": seed, "value": mean + noise[name][seed - 1], **MEASURE}
        for name, mean in means.items()
        for seed in range(1, 6)
    ]
    return pl.DataFrame(results)


@pytest.mark.parametrize(
    ("ours", "rank", "verdict"),
    [
        (0.10, 1, "held"),
        (0.25, 1, "did not hold"),
        (0.25, 2, "held"),
        (0.35, 2, "did not hold"),
        (0.35, 3, "held"),
        (0.2, 1, "inconclusive"),
    ],
)
def test_a_rank_among_rivals_is_one_claim(ours, rank, verdict):
    table, is_lower = ranked_rows(ours=ours, x=0.2, y=0.3, z=0.4), ranked(rank)
    assert decide_claim(is_lower.claim[0], is_lower, table).verdict == verdict
    is_higher = ranked(rank, "higher")
    mirrored = table.with_columns(-pl.col("value"))
    assert decide_claim(is_higher.claim[0], is_higher, mirrored).verdict == verdict


def test_the_interval_of_a_rank_holds_the_truth():
    """Three rivals at the same mean, where order statistics are hardest: the second best is inside in at least 95 %."""
    rng, study = np.random.default_rng(8), ranked(2)
    covered = 0
    for _ in range(200):
        values = rng.normal(0.3, 0.02, (4, 5))
        table = pl.DataFrame(
            [
                {"method": name, "data": "a", "seed": seed + 1, "value": values[i, seed], **MEASURE}
                for i, name in enumerate(("ours", "x", "y", "z"))
                for seed in range(5)
            ]
        )
        overall = decide_claim(study.claim[0], study, table).overall
        covered += overall.low <= 0 <= overall.high
    assert covered >= 183  # 190 of 200; fewer than 183 has a chance of 1 in 300


def test_decided_claims_leave_more_level_to_the_others():
    """Holm over two one-sided hypotheses a claim: the level is 5 % over claims less half the decided ones."""
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05]) / 100
    clear = decide_claims(
        plan(*[CLAIM] * 9, Claim(says="no", of="CE", measure="ece", is_="lower", than=0.5)),
        rows(0.1 + noise, np.array([0.4, 0.6, 0.5, 0.45, 0.55])),
    )
    assert [f.verdict for f in clear] == ["held"] * 9 + ["inconclusive"]
    assert clear[0].level == pytest.approx(0.05 / 10)
    assert clear[-1].level == pytest.approx(0.05 / (10 - 9 / 2))


@pytest.mark.parametrize(
    ("is_", "shift", "verdict"),
    [("lower", -1, "held"), ("lower", 1, "did not hold"), ("higher", 1, "held"), ("higher", -1, "did not hold")],
)
def test_verdict_depends_on_the_claimed_side(is_, shift, verdict):
    claim = Claim(says="c", of="ours", measure="ece", is_=is_, against="CE")
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05]) / 100
    assert decide_claim(claim, plan(claim), rows(0.5 + shift / 10 + noise, np.full(5, 0.5))).verdict == verdict


@pytest.mark.parametrize(("apart", "verdict"), [(0.0, "held"), (0.05, "did not hold"), (0.01, "inconclusive")])
def test_equal_means_within(apart, verdict):
    claim = Claim(says="c", of="ours", measure="ece", is_="equal", against="CE", within=0.01)
    noise = np.array([0.0, 0.1, -0.1, 0.05, -0.05]) / 100
    assert decide_claim(claim, plan(claim), rows(0.5 + apart + noise, np.full(5, 0.5))).verdict == verdict


def test_against_a_number_and_where():
    claim = Claim(says="c", of="CE", measure="ece", is_="higher", than=0.2, where={"data": ["b"]})
    table = pl.concat(
        [rows(np.full(5, 0.1), np.linspace(0.1, 0.11, 5)), rows([0.1] * 5, [0.3, 0.31, 0.32, 0.3, 0.3], ["b"])]
    )
    finding = decide_claim(claim, plan(claim), table)
    assert (finding.verdict, [name for name, _ in finding.cells]) == ("held", ["b"])


def test_one_seed_and_no_rows_are_inconclusive():
    one = decide_claim(CLAIM, plan(CLAIM), rows([0.1], [0.2]))
    assert (one.verdict, one.overall.low, one.overall.difference) == ("inconclusive", None, pytest.approx(-0.1))
    assert decide_claim(CLAIM, plan(CLAIM), rows([0.1], [0.2]).filter(pl.col("method") == "CE")).verdict == "not run"


def test_a_wrong_verdict_is_rare():
    """Of studies in which nothing differs, at most the level calls any of ten claims."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        values = [decide_claim(CLAIM, plan(CLAIM), rows(*rng.normal(size=(2, 5))), 0.05 / 5) for _ in range(5)]
        wrong += any(f.verdict in ("held", "did not hold") for f in values)
    assert wrong <= 22  # 5 % of 200 is 10; more than 22 has a chance of 1 in 5,000
