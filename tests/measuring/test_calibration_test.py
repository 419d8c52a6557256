"""Tests of calibration: the numbers of the specification, and calibrated models that are seldom rejected."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from clinical_rows import OUTCOMES, SCORES, clinical_rows
from scipy.special import ndtr
from scipy.stats import norm

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.measures.mce import MCE
from calibrant.measuring.calibration_test import USUAL
from calibrant.reporting.calibration_state import assess


def clustered(clusters, rows, correlation, seed, off=0.0, mean=0.8, shared=False):
    """Calibrated scores whose outcomes depend on each other within clusters.

    With `shared`, not by normal noise: a share of the rows of a cluster have one random number in common.
    """
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), rows)
    n = len(cluster)
    scores = norm.cdf(mean + 0.8 * np.sqrt(0.5) * (rng.normal(size=clusters)[cluster] + rng.normal(size=n)))
    if shared:
        uniform = np.where(rng.random(n) < correlation, rng.random(clusters)[cluster], rng.random(n))
    else:
        common = np.sqrt(correlation) * rng.normal(size=clusters)[cluster]
        uniform = ndtr(common + np.sqrt(1 - correlation) * rng.normal(size=n))
    return cal.Predictions.from_confidence(scores, uniform < scores - off, clusters=cluster)


# -- numbers ----------------------------------------------------------------------------------------


def test_numbers_of_the_specification():
    """docs/methods/vectors.md#clinical-measures"""
    z = cal.calibration_test(clinical_rows(), "spiegelhalter")
    assert (z.statistic, z.p_value) == pytest.approx((-0.96531093, 0.33438910), abs=1e-8)
    hl = cal.calibration_test(clinical_rows(), "hosmer_lemeshow")
    assert (hl.statistic, hl.p_value) == pytest.approx((10.23799785, 0.41986702), abs=1e-8)
    assert hl.degrees_of_freedom == 10
    assert cal.calibration_test(clinical_rows(), "hosmer_lemeshow", seen=True).degrees_of_freedom == 8


@pytest.mark.parametrize("name", ["spiegelhalter", "hosmer_lemeshow"])
def test_weights_that_count_rows_are_repeated_rows(name):
    counts = np.random.default_rng(0).integers(1, 4, len(SCORES))
    weighted = cal.calibration_test(clinical_rows(weights=counts), name, groups=5)
    repeated = cal.calibration_test(
        cal.Predictions.binary(SCORES.repeat(counts), OUTCOMES.repeat(counts)), name, groups=5
    )
    assert weighted.statistic == pytest.approx(repeated.statistic, rel=1e-9)


@pytest.mark.parametrize("name", ["spiegelhalter", "hosmer_lemeshow"])
def test_scaling_weights_changes_nothing(name):
    w = np.random.default_rng(1).random(len(SCORES)) + 0.2
    a, b = (cal.calibration_test(clinical_rows(weights=by * w), name) for by in (1, 50))
    assert a.statistic == pytest.approx(b.statistic, rel=1e-9)


def test_an_event_that_the_scores_rule_out_is_rejected():
    p = cal.Predictions.binary([0.0] * 30 + [1.0] * 30, [0] * 29 + [1] * 31)
    for name in ("spiegelhalter", "hosmer_lemeshow"):
        assert cal.calibration_test(p, name, groups=2).p_value < 0.001


def test_groups_that_expect_less_than_one_event_are_simulated():
    p = cal.Predictions.binary(SCORES / 10, OUTCOMES)
    test = cal.calibration_test(p, "hosmer_lemeshow", resamples=50)
    assert (test.method, test.degrees_of_freedom) == ("simulated outcomes", None)
    assert cal.calibration_test(p, "hosmer_lemeshow", seen=True).method == "chi-squared"


def four_scores(positives=(11, 29, 49, 71)):
    scores = np.repeat([0.2, 0.4, 0.6, 0.8], 100)
    return cal.Predictions.binary(scores, np.concatenate([np.arange(100) < count for count in positives]).astype(int))


def test_rows_of_one_score_stay_in_one_group():
    """docs/methods/vectors.md#clinical-measures; cut over ten groups the statistic was 19.976, p = .029."""
    hl = cal.calibration_test(four_scores(), "hosmer_lemeshow")
    assert (hl.statistic, hl.p_value) == pytest.approx((20.20833333, 0.00045426), abs=1e-8)
    assert hl.degrees_of_freedom == 4
    assert cal.calibration_test(four_scores(), "hosmer_lemeshow", seen=True).degrees_of_freedom == 2
    two = cal.Predictions.binary(np.repeat([0.3, 0.7], 100), np.tile([0, 1], 100))
    assert "too few distinct scores" in cal.calibration_test(two, "hosmer_lemeshow", seen=True).reason


def test_the_size_holds_for_rounded_scores():
    """Calibrated scores in tenths: of the cut groups .003 were rejected at 5 %, and .21 of scores 6 points too high."""
    rng, rejected, found, sets = np.random.default_rng(0), 0, 0, 200
    for _ in range(sets):
        scores = np.round(rng.beta(5, 1.5, 250), 1)
        for shift in (0.0, 0.06):
            p = cal.Predictions.binary(scores, rng.random(250) < scores - shift)
            significant = cal.calibration_test(p, "hosmer_lemeshow", resamples=200).p_value <= 0.05
            rejected, found = rejected + (significant and not shift), found + (significant and bool(shift))
    assert 0.02 <= rejected / sets <= 0.085
    assert found / sets >= 0.4


def test_one_sentence_for_several_tests():
    tests = cal.calibration_test(clinical_rows(), ["spiegelhalter", "hosmer_lemeshow", "atb", "ece"])
    assert [test.test for test in tests] == list(USUAL)
    assert tests.sentence == "Not calibrated, by atb at the 5 % level (corrected for 4 tests)."
    assert all(test.blind_to for test in tests)
    rng = np.random.default_rng(0)
    calm = cal.calibration_test(
        cal.Predictions.binary(SCORES, rng.random(200) < SCORES),
        ["spiegelhalter", "hosmer_lemeshow", "atb", "ece"],
        resamples=200,
    )
    assert calm.sentence.startswith("No evidence against calibration at the 5 % level (corrected for 4 tests).")


def test_a_measure_says_itself_what_it_is_blind_to():
    @dataclass(frozen=True)
    class Mine(MCE):
        blind_to: ClassVar[str] = "all bins but one"

    p = cal.Predictions.binary(SCORES, OUTCOMES)
    tests = [cal.calibration_test(p, what, resamples=20).blind_to for what in ("ece:bins=5", Mine(), MCE())]
    assert tests == [
        "errors that cancel within a bin",
        "all bins but one",
        "what maximum calibration error does not see",
    ]


def test_the_verdict_is_the_test_by_the_ece():
    p = clinical_rows()
    test, noise = cal.calibration_test(p, "ece"), assess(p).noise
    assert (noise.observed, noise.expected, noise.upper, noise.p_value) == (
        test.statistic,
        test.expected,
        test.upper,
        test.p_value,
    )


# -- bad input --------------------------------------------------------------------------------------


def test_too_few_rows_for_groups_give_no_p_value():
    test = cal.calibration_test(clinical_rows().take(range(30)), "hosmer_lemeshow")
    assert np.isnan(test.p_value)
    assert test.reason == "too few rows for 10 groups: 30, at least 50 are needed"


@pytest.mark.parametrize(("groups", "seen"), [(1, False), (2, True)])
def test_too_few_groups_are_refused(groups, seen):
    with pytest.raises(InputError, match="groups: expected at least"):
        cal.calibration_test(clinical_rows(), "hosmer_lemeshow", groups=groups, seen=seen)


def test_a_measure_that_is_no_error_cannot_be_tested():
    with pytest.raises(InputError, match="spiegelhalter or hosmer_lemeshow"):
        cal.calibration_test(clinical_rows(), "slope")


@pytest.mark.parametrize("what", ["nll", "classwise"])
def test_a_measure_without_a_curve_cannot_be_tested_in_clusters(what):
    p = clustered(20, 5, 0.5, 0)
    if what == "classwise":
        probs = np.stack([p.confidence, 1 - p.confidence], axis=1)
        p = cal.Predictions.from_probs(probs, 1 - p.correct, clusters=p.clusters)
    with pytest.raises(InputError, match="rows in clusters"):
        cal.calibration_test(p, what)


@pytest.mark.parametrize("what", USUAL)
def test_too_few_clusters_give_no_p_value(what):
    test = cal.calibration_test(clustered(5, 50, 0.5, 0), what, resamples=50)
    assert np.isnan(test.p_value)
    assert test.reason == "too few clusters for an interval: 5, at least 10 are needed"
    assert test.to_dict()["p_value"] is None


# -- size and power ---------------------------------------------------------------------------------


@pytest.mark.parametrize("what", USUAL)
def test_miscalibrated_clusters_are_rejected(what):
    sets = [clustered(80, 6, 0.2, seed, off=0.2) for seed in range(10)]
    chances = [cal.calibration_test(p, what, resamples=100).p_value for p in sets]
    assert np.mean(np.array(chances) < 0.05) >= 0.9


def test_rows_that_are_their_own_clusters_are_independent_rows():
    p = clinical_rows(clusters=np.arange(200))
    for what in ("spiegelhalter", "ece"):
        alone, plain = (cal.calibration_test(q, what, resamples=500) for q in (p, clinical_rows()))
        assert alone.p_value == pytest.approx(plain.p_value, abs=0.1)


MOST = 0.06  # of 1,000 calibrated sets at the 5 % level


def share_rejected(sets, what):
    return np.mean([cal.calibration_test(p, what, resamples=200, seed=i).p_value <= 0.05 for i, p in enumerate(sets)])


@pytest.mark.slow
@pytest.mark.parametrize("what", USUAL)
@pytest.mark.parametrize(("shape", "n"), [((2, 2), 200), ((5, 1.2), 500), ((1, 9), 1000)])
def test_calibrated_scores_are_seldom_rejected(what, shape, n):
    def sets():
        for seed in range(1000):
            rng = np.random.default_rng([seed, n])
            scores = rng.beta(*shape, n)
            yield cal.Predictions.binary(scores, rng.random(n) < scores)

    assert share_rejected(sets(), what) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("what", USUAL)
@pytest.mark.parametrize(
    ("clusters", "rows", "correlation", "mean", "shared"),
    [(20, 25, 0.5, 0.8, False), (50, 20, 0.9, 0.8, False), (100, 10, 0.5, 0.8, False), (50, 10, 0.5, 0.8, True)],
)
def test_calibrated_clusters_are_seldom_rejected(what, clusters, rows, correlation, mean, shared):
    """Drawing outcomes row by row rejects 17 to 58 % of them, random signs of whole clusters 7 to 10 %."""
    sets = (clustered(clusters, rows, correlation, seed, mean=mean, shared=shared) for seed in range(1000))
    assert share_rejected(sets, what) <= MOST
