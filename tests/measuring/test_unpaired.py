"""Two sets of rows: an interval that is honest about both, and a gate on getting worse."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.measuring.check import all_pass


def rows(n, *, off=0.0, seed=0, **extras):
    rng = np.random.default_rng(seed)
    s = rng.beta(5, 1.5, n)
    return cal.Predictions.from_confidence(s, rng.random(n) < s - off, **extras)


@pytest.mark.parametrize("what", ["accuracy", "brier", "ece", "auroc_correct"])
def test_the_interval_covers_nothing_when_nothing_changed_and_finds_a_change(what):
    a, b, worse = rows(1500, seed=1), rows(1000, seed=2), rows(1000, seed=3, off=0.15)
    same = cal.compare(a, b, what, paired=False, resamples=200)
    assert (same.better, same.paired, same.n, same.n_b) == ("neither", False, 1500, 1000)
    assert same.difference == cal.measure(b, what, resamples=0).value - cal.measure(a, what, resamples=0).value
    if what != "auroc_correct":
        assert cal.compare(a, worse, what, paired=False, resamples=200).better == "a"


def test_it_is_as_wide_as_two_independent_sets_make_it():
    a, b = rows(4000, seed=1), rows(1000, seed=2)
    comparison = cal.compare(a, b, "accuracy", paired=False, resamples=1000)
    error = np.sqrt(a.outcome.var() / a.n + b.outcome.var() / b.n)
    assert comparison.high - comparison.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_coverage_of_the_difference_of_two_calibration_errors():
    missed = 0
    truth = 0.05  # a calibrated set and one that is too sure by 0.05 everywhere: ECE 0 and 0.05
    for seed in range(40):
        comparison = cal.compare(rows(800, seed=seed), rows(600, seed=1000 + seed, off=0.05), "ece", paired=False)
        missed += not comparison.low <= truth <= comparison.high
    assert missed <= 6


def test_worse_than_a_reference():
    before, now = rows(3000, seed=1), rows(3000, seed=2, off=0.1)
    broken = cal.check(now, "ece", against=before, limit=0.01)
    kept = cal.check(rows(3000, seed=3), "accuracy", against=before, limit=0.05)
    unsure = cal.check(rows(100, seed=3), "accuracy", against=before, limit=0.01)
    assert [c.state for c in (broken, kept, unsure)] == ["violated", "holds", "inconclusive"]
    assert broken.value == pytest.approx(cal.compare(before, now, "ece", paired=False).difference)
    assert broken.low <= broken.value <= broken.high
    assert kept.value == pytest.approx(before.outcome.mean() - rows(3000, seed=3).outcome.mean())
    assert "worse than on 3,000 reference rows" in broken.definition
    assert [all_pass([kept]), all_pass([kept, unsure]), all_pass([kept, unsure], strict=True), all_pass([broken])] == [
        True,
        True,
        False,
        False,
    ]


def test_what_cannot_be_compared_is_refused():
    p = rows(50)
    with pytest.raises(cal.InputError, match="predictions of one task"):
        cal.compare(p, cal.Predictions.binary([0.1, 0.9], [0, 1]), paired=False)
    with pytest.raises(cal.InputError, match="the same classes"):
        cal.compare(
            cal.Predictions.from_logits(2 * np.eye(3), [0, 1, 2]),
            cal.Predictions.from_logits(2 * np.eye(4), [0, 1, 2, 3]),
            paired=False,
        )
    with pytest.raises(cal.InputError, match=r"paired=False \(--unpaired\)"):
        cal.compare(p, rows(60))
    with pytest.raises(cal.InputError, match="worse in one direction"):
        cal.check(p, "gap", against=p, limit=0.1)
    with pytest.raises(cal.InputError, match="undefined on these rows"):
        cal.check(p, "auroc_correct", against=p.take(p.outcome), limit=0.1)
    with pytest.raises(cal.InputError, match="all classes"):
        cal.check(p, "classwise", limit=0.1)
    with pytest.raises(cal.InputError, match="limit"):
        cal.check(p, "ece", against=p, limit=float("nan"))
