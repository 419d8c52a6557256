"""Rows whose outcomes are all alike: no interval of zero width, and ends that hold."""

import numpy as np
import pytest
from scipy.stats import binomtest

import calibrant as cal
from calibrant.core.predictions import Predictions
from calibrant.measuring.single_outcome import single_outcome, with_other_outcomes

ALL_RIGHT = {
    "confidence": Predictions.from_confidence([0.7] * 12, [1] * 12),
    "binary": Predictions.binary([0.01] * 12 + [0.02], [0] * 13),
    "multiclass": Predictions.from_logits(np.eye(3)[[0, 1, 2] * 5] * 9, [0, 1, 2] * 5),
}


@pytest.mark.parametrize("p", ALL_RIGHT.values(), ids=ALL_RIGHT)
def test_no_interval_has_zero_width(p):
    for m in [*cal.measure(p, "standard"), *cal.measure(p, ["error", "debiased", "resolution", "uncertainty"])]:
        if m.low is not None:
            assert m.high - m.low > 1e-6, m
        else:
            assert m.reason or np.isnan(m.value)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_ends_of_the_accuracy_are_exact(confidence):
    peer = binomtest(12, 12).proportion_ci(confidence_level=confidence, method="exact")
    measurement = cal.measure(ALL_RIGHT["confidence"], "accuracy", confidence=confidence)
    assert (measurement.low, measurement.high) == pytest.approx((peer.low, 1.0))
    wrong = cal.measure(Predictions.from_confidence([0.7] * 12, [0] * 12), "accuracy", confidence=confidence)
    assert (wrong.low, wrong.high) == pytest.approx((0.0, 1 - peer.low))
    sums = cal.Accumulator(["accuracy"])
    sums.update(ALL_RIGHT["confidence"])
    assert sums.measure("accuracy", confidence=confidence).low == pytest.approx(peer.low)


def test_clusters_and_weights_count_as_fewer_rows():
    alone = cal.measure(Predictions.from_confidence([0.9] * 40, [1] * 40), "accuracy")
    pairs = cal.measure(Predictions.from_confidence([0.9] * 40, [1] * 40, clusters=np.arange(40) // 2), "accuracy")
    assert alone.low == pytest.approx(0.025 ** (1 / 40))
    assert pairs.low == pytest.approx(0.025 ** (1 / 20))


def test_a_calibrated_model_that_was_never_wrong_is_not_called_miscalibrated():
    p = Predictions.from_confidence(0.9 + 0.005 * np.arange(15), np.ones(15))
    for name in ("ece", "ece:scheme=mass", "smooth", "mce"):
        assert cal.measure(p, name).low == 0.0  # 15 right answers of 94 % come in 40 % of trials
    gap = cal.measure(p, "gap")
    assert gap.low < 0 < gap.high
    assert cal.check(p, "ece", limit=0.03).state == "inconclusive"


def test_rare_errors_lie_inside_the_interval():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(200):
        confidence = rng.uniform(0.9, 1.0, 30)
        p = Predictions.from_confidence(confidence, rng.random(30) < confidence)
        measurement = cal.measure(p, "gap", resamples=200)
        covered += measurement.low <= 0.0 <= measurement.high
    assert covered >= 180  # 21 % of these samples have no error; the bootstrap alone held 0 in 170 of 200


def test_other_outcomes_keep_scores_and_weights():
    p = ALL_RIGHT["multiclass"]
    assert single_outcome(p)
    mixed = with_other_outcomes(p, 0.2)
    assert not single_outcome(mixed)
    assert cal.measure(mixed, "accuracy", resamples=0).value == pytest.approx(0.8)
    assert cal.measure(mixed, "entropy", resamples=0).value == pytest.approx(cal.measure(p, "entropy").value)


def test_a_score_that_decides_the_value_has_no_interval():
    measurement = cal.measure(Predictions.binary([0.5] * 20, [0, 1] * 10), "brier")
    assert measurement.value == 0.25
    assert measurement.low is None
    assert "every row gives the same value" in measurement.reason
