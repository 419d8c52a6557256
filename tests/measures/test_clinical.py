"""Measures that medicine, credit and forecasting report: vectors, rows on which they do not exist, clusters."""

import numpy as np
import pytest
from clinical_rows import OUTCOMES, SCORES, N, clinical_rows

import calibrant as cal
from calibrant.core.errors import UndefinedMeasureError
from calibrant.measures import make

VALUES = {  # docs/methods/vectors.md#clinical-measures
    "slope": 1.26046944,
    "intercept": -0.58396080,
    "in_the_large": -0.51449027,
    "oe_ratio": 0.83,
    "ici": 0.08830227,
    "e50": 0.10127717,
    "e90": 0.12703461,
    "emax": 0.12831295,
    "atb": 0.00549949,
    "cutoff": 0.08911250,
}
OF_LOG_ODDS = ("slope", "intercept", "in_the_large")


@pytest.mark.parametrize("name", VALUES)
def test_number_of_the_specification(name):
    assert make(name)(clinical_rows()) == pytest.approx(VALUES[name], abs=1e-8)


def test_averaged_two_bin_error_of_four_rows():
    p = cal.Predictions.binary([0.1, 0.3, 0.4, 0.8], [0, 1, 0, 1])
    assert make("atb")(p) == pytest.approx(0.01075, abs=1e-12)


def test_averaged_two_bin_error_is_the_integral_of_its_definition():
    p, grid = clinical_rows(), (np.arange(200_000) + 0.5) / 200_000
    below = np.array([((SCORES - OUTCOMES) * (q > SCORES)).sum() for q in grid[::100]]) / N
    whole = (SCORES - OUTCOMES).sum() / N
    assert make("atb")(p) == pytest.approx(np.mean(below**2 + (whole - below) ** 2), abs=2e-6)


def test_cutoff_is_the_largest_gap_of_all_intervals():
    s, y = np.round(SCORES[::4], 1), OUTCOMES[::4]
    ends = np.unique(s)
    gaps = [abs(((s - y) * ((s >= a) & (s <= b))).sum()) / len(s) for a in ends for b in ends if a <= b]
    assert make("cutoff")(cal.Predictions.binary(s, y)) == pytest.approx(max(gaps), abs=1e-12)


def test_only_the_true_probabilities_minimise_the_expected_two_bin_error():
    rng = np.random.default_rng(0)
    true = rng.random(400)
    outcomes = [(rng.random(400) < true).astype(int) for _ in range(200)]

    def expected(scores):
        return np.mean([make("atb")(cal.Predictions.binary(scores, y)) for y in outcomes])

    assert expected(true) < min(expected(0.9 * true + 0.05), expected(np.clip(1.1 * true - 0.05, 0, 1)))


@pytest.mark.parametrize("task", ["multiclass", "confidence", "choice"])
def test_other_tasks_read_confidence_and_correctness(task):
    rng = np.random.default_rng(1)
    logits = 2 * rng.normal(size=(300, 3))
    labels = (logits + rng.gumbel(size=(300, 3))).argmax(axis=1)
    p = cal.Predictions.from_logits(logits, labels, mask=np.ones((300, 3), bool) if task == "choice" else None)
    confidence, correct = p.confidence, p.correct
    if task == "confidence":
        p = cal.Predictions.from_confidence(confidence, correct)
    assert p.task == task
    for name in VALUES:
        assert make(name)(p) == pytest.approx(make(name)(cal.Predictions.binary(confidence, correct)), rel=1e-9)


# -- rows on which they do not exist ----------------------------------------------------------------


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", OF_LOG_ODDS)
def test_rows_of_one_class_are_named(name, label):
    p = cal.Predictions.binary(SCORES, np.full(N, label))
    with pytest.raises(UndefinedMeasureError, match=f"{name}: expected outcomes of both classes.*one class only"):
        cal.measure(p, name)


@pytest.mark.parametrize("outcomes", [SCORES > 0.5, SCORES < 0.5], ids=["rising", "falling"])
def test_separable_rows_are_named(outcomes):
    p = cal.Predictions.binary(SCORES, outcomes)
    for name in ("slope", "intercept"):
        with pytest.raises(UndefinedMeasureError, match="separable rows"):
            cal.measure(p, name)
    assert np.isfinite(cal.measure(p, "in_the_large").value)


def test_rows_that_are_separable_but_for_a_tie_are_named():
    with pytest.raises(UndefinedMeasureError, match="separable"):
        make("slope")(cal.Predictions.binary([0.1, 0.2, 0.5, 0.5, 0.8, 0.9], [0, 0, 0, 1, 1, 1]))


def test_equal_scores_have_no_slope():
    with pytest.raises(UndefinedMeasureError, match="all equal"):
        make("slope")(cal.Predictions.binary(np.full(20, 0.3), [0, 1] * 10))


def test_scores_of_zero_and_one_are_floored():
    scores, outcomes = np.append(SCORES, [0.0, 1.0]), np.append(OUTCOMES, [0, 1])
    floored = np.clip(scores, 1e-12, 1 - 1e-12)
    for name in OF_LOG_ODDS:
        value = make(name)(cal.Predictions.binary(scores, outcomes))
        assert value == pytest.approx(make(name)(cal.Predictions.binary(floored, outcomes)), rel=1e-12)
        assert "1e-12" in make(name).definition


def test_the_standard_set_says_undefined_and_why():
    p = cal.Predictions.binary(SCORES, SCORES > 0.5)
    rows = {m.measure: m for m in cal.measure(p, "standard", resamples=20)}
    assert np.isnan(rows["slope"].value)
    assert "separable rows" in rows["slope"].reason
    assert np.isfinite(rows["ici"].value)


def test_a_ratio_of_zero_has_no_interval():
    m = cal.measure(cal.Predictions.binary(SCORES, np.zeros(N)), "oe_ratio")
    assert (m.value, m.low) == (0.0, None)
    assert m.reason == "a ratio of 0 has no interval: not one event was seen"


def test_scores_of_zero_expect_nothing():
    with pytest.raises(UndefinedMeasureError, match="denominator above 0"):
        cal.measure(cal.Predictions.binary(np.zeros(20), np.ones(20)), "oe_ratio")


# -- intervals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*OF_LOG_ODDS, "oe_ratio"])
def test_the_interval_is_about_that_of_the_bootstrap(name):
    p, m = clinical_rows(), cal.measure(clinical_rows(), name)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(N, np.full(N, 1 / N), size=2000)
    draws = make(name).resample(p, counts)
    assert (m.high - m.low) / (2 * 1.972) == pytest.approx(np.nanstd(draws), rel=0.12)


@pytest.mark.parametrize("name", VALUES)
def test_copies_in_one_cluster_change_no_interval(name):
    """Nine copies of each row that come together tell no more than one row."""
    copies = np.repeat(np.arange(N), 9)
    together = cal.Predictions.binary(SCORES[copies], OUTCOMES[copies], clusters=copies)
    wide, true = (cal.measure(p, name) for p in (together, clinical_rows()))
    assert wide.value == pytest.approx(true.value, rel=0.02)
    assert wide.high - wide.low == pytest.approx(true.high - true.low, rel=0.2)


def test_nearness_to_one_is_what_models_are_compared_by():
    better = cal.Predictions.binary(1 / (1 + np.exp(0.58 - 1.26 * np.log(SCORES / (1 - SCORES)))), OUTCOMES)
    c = cal.compare(clinical_rows(), better, "slope", resamples=200)
    assert c.difference == pytest.approx(abs(c.b - 1) - abs(c.a - 1))
    assert c.definition.endswith("distances from 1")
    assert c.difference < 0
