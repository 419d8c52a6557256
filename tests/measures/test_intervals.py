"""Intervals, the paired test, the gate and the consistency test do what they promise."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.intervals import basic_interval, p_value, resample_counts


def calibrated(n, k=5, seed=0, temperature=1.0):
    """Labels drawn from the probabilities; a temperature below one then makes the model overconfident."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = (probs.cumsum(1) < rng.random((n, 1))).sum(1)
    return cal.Predictions.from_logits(logits / temperature, labels)


def test_every_resample_has_n_rows_and_the_seed_decides():
    first, again = (np.concatenate(list(resample_counts(50, 30, 7))) for _ in range(2))
    assert first.shape == (30, 50)
    assert (first.sum(axis=1) == 50).all()
    assert (first == again).all()


def test_batching_does_not_change_the_resamples(monkeypatch):
    whole = np.concatenate(list(resample_counts(50, 30, 7)))
    monkeypatch.setattr("calibrant.core.intervals.BATCH_ELEMENTS", 100)
    assert (np.concatenate(list(resample_counts(50, 30, 7))) == whole).all()


def test_interval_of_a_mean_is_the_textbook_one():
    p = calibrated(4000, seed=1)
    m = cal.measure(p, "accuracy")
    half = 1.96 * np.sqrt(m.value * (1 - m.value) / p.n)
    assert m.low == pytest.approx(m.value - half, abs=0.1 * half)
    assert m.high == pytest.approx(m.value + half, abs=0.1 * half)


def test_interval_holds_the_value_and_keeps_to_the_bounds():
    p = calibrated(200, seed=2)
    for spec in cal.measures.names():
        m = cal.measure(p, spec, resamples=40)
        low, high = cal.measures.make(spec).bounds
        assert low <= m.low <= m.value <= m.high <= high, spec


def test_undefined_stays_undefined():
    p = cal.Predictions.from_probs([[0.9, 0.1], [0.8, 0.2]], [0, 0])
    m = cal.measure(p, "auroc", resamples=20)
    assert np.isnan(m.value)
    assert m.to_dict()["value"] is m.to_dict()["low"] is None


def test_p_value_and_interval_agree_up_to_the_last_resample():
    rng = np.random.default_rng(0)
    for shift in np.linspace(-4, 4, 33):
        draws = shift + rng.normal(size=999)
        interval = basic_interval(shift, draws, 0.95)
        outside = interval.low > 0 or interval.high < 0
        assert outside or p_value(shift, draws) > 0.046
        assert not outside or p_value(shift, draws) < 0.054


def test_compare_aligns_rows_by_id():
    p = calibrated(300, seed=3)
    ids = np.arange(300)
    a = cal.Predictions.from_logits(p.logits, p.labels, ids=ids)
    order = np.random.default_rng(0).permutation(300)
    b = cal.Predictions.from_logits(p.logits[order] / 2, p.labels[order], ids=ids[order])
    same = cal.Predictions.from_logits(p.logits / 2, p.labels)
    assert cal.compare(a, b, "nll", resamples=50) == cal.compare(p, same, "nll", resamples=50)
    other = cal.Predictions.from_logits(p.logits, p.labels, ids=ids + 1)
    with pytest.raises(cal.InputError, match="different ids"):
        cal.compare(a, other, "nll", resamples=50)


def test_compare_knows_which_way_is_better():
    p = calibrated(2000, seed=4)
    sharp = p.tempered(0.3)
    assert cal.compare(p, sharp, "ece", resamples=200).better == "a"
    assert cal.compare(sharp, p, "gap", resamples=200).better == "b"
    assert cal.compare(p, p, "accuracy", resamples=200).better == "neither"
    assert cal.compare(p, sharp, "entropy", resamples=200).better == "neither"


def test_consistency_tells_noise_from_miscalibration():
    good, bad = calibrated(500, seed=5), calibrated(500, seed=5, temperature=0.4)
    assert cal.consistency(good, "ece").p_value > 0.05
    assert cal.consistency(bad, "ece").p_value < 0.01
    assert cal.consistency(bad, "classwise", resamples=50).p_value < 0.05
    with pytest.raises(cal.InputError, match="lower is better"):
        cal.consistency(good, "auroc")


@pytest.mark.slow
def test_consistency_p_values_are_uniform_under_perfect_calibration():
    values = [cal.consistency(calibrated(300, seed=s), "ece", resamples=200, seed=s).p_value for s in range(400)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(values) <= level) == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / 400))


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 0.7, 0.4])
def test_intervals_cover_the_true_binned_ece(temperature):
    truth = cal.measure(calibrated(1_000_000, temperature=temperature, seed=99), "ece", resamples=0).value
    covered = 0
    for seed in range(200):
        m = cal.measure(calibrated(1000, temperature=temperature, seed=seed), "ece", resamples=300, seed=seed)
        covered += m.low <= truth <= m.high
    assert covered >= 180  # nominal 190; percentile intervals cover the calibrated case almost never


@pytest.mark.slow
def test_paired_test_keeps_its_level_when_models_are_alike():
    small = []
    for seed in range(300):
        p = calibrated(600, seed=seed, temperature=0.6)
        rng = np.random.default_rng(1000 + seed)
        a = cal.Predictions.from_logits(p.logits + 0.5 * rng.normal(size=(600, 5)), p.labels)
        b = cal.Predictions.from_logits(p.logits + 0.5 * rng.normal(size=(600, 5)), p.labels)
        small.append(cal.compare(a, b, "ece", resamples=300, seed=seed).p_value < 0.05)
    assert np.mean(small) < 0.09
