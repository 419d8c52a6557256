"""A rate from few labels and many scores: numbers of the methods page, coverage, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest
from commands import run
from scipy import stats

import calibrant as cal
from calibrant import InputError

ROWS, MORE = np.arange(1, 61), np.arange(1, 601)
S, U = 0.6180339887498949 * ROWS % 1, (0.5698402909980532 * MORE % 1) ** 0.8
Y = (0.7548776662466927 * ROWS % 1 < S**1.5).astype(float)
LABELLED, FURTHER = {"score": S, "human": Y}, {"score": U}


def test_the_numbers_of_the_methods_page():
    """docs/rates.md#vectors"""
    rate = cal.estimate_rate(LABELLED, FURTHER, map="identity")
    assert rate.weight_of_judge == pytest.approx(0.86613692, abs=1e-8)
    assert (rate.value, rate.low, rate.high) == pytest.approx((0.43317890, 0.32655404, 0.53980376), abs=1e-8)
    t = stats.t.ppf(0.975, 59)
    assert rate.labels_alone == pytest.approx((0.38333333, 0.38333333 - t * 0.06329764, 0.38333333 + t * 0.06329764))
    assert rate.worth == pytest.approx(60 * (0.06329764 / 0.05328591) ** 2, rel=1e-6)
    clustered = cal.estimate_rate(
        LABELLED | {"prompt": (ROWS - 1) % 20}, FURTHER | {"prompt": (MORE - 1) % 100}, map="identity", cluster="prompt"
    )
    assert (clustered.low, clustered.high) == pytest.approx((0.30404663, 0.56231117), abs=1e-8)


def test_verdicts_are_scores_of_0_and_1():
    rate = cal.estimate_rate({"score": S > 0.5, "human": Y}, {"score": U > 0.5}, map="identity")
    assert (rate.weight_of_judge, rate.value) == pytest.approx((0.39393939, 0.41484848), abs=1e-8)
    said, true = S > 0.5, Y == 1
    assert rate.sensitivity == pytest.approx((said & true).sum() / true.sum())
    assert rate.specificity == pytest.approx((~said & ~true).sum() / (~true).sum())
    agree, chance = (said == true).mean(), said.mean() * true.mean() + (1 - said.mean()) * (1 - true.mean())
    assert rate.kappa == pytest.approx((agree - chance) / (1 - chance))


def test_one_table_with_empty_labels_predictions_and_files_give_the_same(tmp_path):
    two = cal.estimate_rate(LABELLED, FURTHER)
    table = pl.DataFrame({"score": np.append(S, U), "human": [*Y.tolist(), *[None] * 600]})
    table.write_csv(tmp_path / "rows.csv")
    p = cal.Predictions.binary(S, Y.astype(int)), cal.Predictions.binary(U, None)
    for rate in (cal.estimate_rate(table), cal.estimate_rate(tmp_path / "rows.csv"), cal.estimate_rate(*p)):
        assert (rate.value, rate.low, rate.high) == pytest.approx((two.value, two.low, two.high))


def test_a_scale_changes_nothing_but_the_scores():
    ten = cal.estimate_rate({"score": 1 + 9 * S, "human": Y}, {"score": 1 + 9 * U}, scale=(1, 10))
    assert ten.value == pytest.approx(cal.estimate_rate(LABELLED, FURTHER).value)


def test_a_map_that_saw_none_of_the_rows_is_used_as_it_is():
    m = cal.fit(cal.Predictions.binary(S, Y.astype(int)), "platt")
    given = cal.estimate_rate(LABELLED, FURTHER, map=m)
    own = cal.estimate_rate({"score": m(cal.Predictions.binary(S, None)).score, "human": Y},
                            {"score": m(cal.Predictions.binary(U, None)).score}, map="identity")  # fmt: skip
    assert (given.value, given.low) == pytest.approx((own.value, own.low))


def test_graded_labels_are_means_and_no_classes():
    grades = np.clip(0.3 * Y + 0.5 * S, 0, 1)
    rate = cal.estimate_rate({"score": S, "human": grades}, FURTHER)
    assert rate.labels_alone[0] == pytest.approx(grades.mean())
    assert rate.sensitivity is None
    assert rate.high - rate.low < rate.labels_alone[2] - rate.labels_alone[1]


def test_whole_weights_are_repeated_rows_in_the_value():
    w = np.random.default_rng(0).integers(1, 4, 60)
    weighted = cal.estimate_rate(LABELLED | {"w": w}, FURTHER | {"w": np.ones(600)}, map="identity", weight="w")
    assert weighted.labels_alone[0] == pytest.approx(np.average(Y, weights=w))


def draw(rng, n, more, bias=1.0):
    """Rows whose judge says everything higher by `bias` in log-odds."""
    x = rng.normal(size=n + more)
    y = (rng.random(n + more) < 1 / (1 + np.exp(-1.5 * x))).astype(float)
    s = 1 / (1 + np.exp(-(1.5 * x + bias + 0.5 * rng.normal(size=n + more))))
    return {"score": s[:n], "human": y[:n]}, {"score": s[n:]}


@pytest.mark.parametrize("n", [50, 200])
def test_the_interval_holds_the_truth_whatever_the_judge(n):
    rng, covered, widths = np.random.default_rng(n), 0, []
    for seed in range(120):
        rate = cal.estimate_rate(*draw(rng, n, 600), seed=seed)
        covered += rate.low <= 0.5 <= rate.high
        widths.append((rate.high - rate.low) / (rate.labels_alone[2] - rate.labels_alone[1]))
    assert covered >= 107
    assert np.mean(widths) < 0.95


@pytest.mark.slow
@pytest.mark.parametrize(("n", "more"), [(50, 600), (100, 5000), (300, 600), (300, 5000)])
def test_coverage_is_what_the_page_says(n, more):
    rng = np.random.default_rng((n, more))
    rates = [cal.estimate_rate(*draw(rng, n, more), seed=seed) for seed in range(1000)]
    covered = np.mean([r.low <= 0.5 <= r.high for r in rates])
    print(f"\nrate n={n} N={more}: covered {covered:.3f}, width {np.mean([r.high - r.low for r in rates]):.3f}")
    assert 0.93 <= covered <= 0.97


def test_each_group_has_its_own_rate_and_a_biased_judge_is_found():
    rng = np.random.default_rng(1)
    parts = [draw(rng, 200, 500, bias) for bias in (0.0, 0.0, 3.0)]
    rows = {
        "score": np.concatenate([np.append(a["score"], b["score"]) for a, b in parts]),
        "human": np.concatenate([np.append(a["human"], np.full(500, np.nan)) for a, b in parts]),
        "policy": np.repeat(["a", "b", "c"], 700),
    }
    rates = cal.estimate_rate(rows, by="policy", map="identity")
    assert [rate.group for rate in rates] == ["a", "b", "c"]
    assert rates[2].bias_p_value < 0.001 < 0.05 < rates[0].bias_p_value
    assert "promise" in rates[2].bias_words
    assert "too much" in rates[2].bias_words
    rows["human"][:200] = np.nan
    with pytest.raises(InputError, match="none in a"):
        cal.estimate_rate(rows, by="policy")


def test_few_labels_have_no_interval_and_say_why():
    rate = cal.estimate_rate({"score": S[:6], "human": Y[:6]}, FURTHER)
    assert rate.low is None
    assert "too few rows" in rate.reason
    assert "No interval" in rate.words


def test_labels_that_are_all_alike_have_no_interval_of_no_width():
    rate = cal.estimate_rate({"score": S[:30], "human": np.ones(30)}, FURTHER)
    assert (rate.low, rate.high) == (None, None)
    assert "all labels are alike" in rate.words


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ({"score": [0.5, 0.6], "human": [None, None]}, {}, "rows with a label"),
        ({"score": [5.0, 0.6], "human": [1, 0]}, {}, "scale"),
        ({"score": [0.5, None], "human": [1, 0]}, {}, "score from 0 to 1 in every row"),
        ({"score": [0.5, 0.6], "human": [2, 0]}, {}, "labels from 0 to 1"),
        ({"score": [0.5, 0.6], "human": ["yes", "no"]}, {}, "numbers"),
        ({"score": [0.5, 0.6], "label": [1, 0]}, {}, "human"),
        ({"score": [0.5, 0.6], "human": [1, 0], "w": [1.0, None]}, {"weight": "w"}, "weights above 0"),
        ({"score": [0.5, 0.6], "human": [1, 0]}, {"scale": (1, 1)}, "the lowest score, then the highest"),
        ({"score": ["0.5", "nan"], "human": [1, 0]}, {}, "score from 0 to 1 in every row"),
        (LABELLED, {"map": "plat"}, "platt"),
    ],
)
def test_what_cannot_be_estimated_is_refused(rows, options, words):
    with pytest.raises(InputError, match=words):
        cal.estimate_rate(rows, FURTHER, **options)


def test_the_command(tmp_path):
    pl.DataFrame({"judge": np.append(1 + 9 * S, 1 + 9 * U), "human": [*Y.tolist(), *[None] * 600]}).write_csv(
        tmp_path / "rows.csv"
    )
    args = ("estimate", "rows.csv", "--score-column", "judge", "--scale", "1,10")
    rate = json.loads(run(*args, "--json", cwd=tmp_path).stdout)[0]
    assert rate["value"] == pytest.approx(cal.estimate_rate(LABELLED, FURTHER).value)
    assert "60 labels and 600 further scores put the rate at" in " ".join(run(*args, cwd=tmp_path).stdout.split())
    wrong = run("estimate", "rows.csv", "--score-column", "judge", "--scale", "10,1", cwd=tmp_path, code=2)
    assert "--scale" in wrong.stderr
