"""Intervals, the paired test, the gate and the consistency test do what they promise."""

from contextlib import suppress

import numpy as np
import pytest
from synthetic import suited

import calibrant as cal
from calibrant.core.statistics.bootstrap import resample_counts
from calibrant.core.statistics.estimate import Draws, Estimate
from calibrant.core.statistics.sampling import Sampling, affordable
from calibrant.measures import make


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
    monkeypatch.setattr("calibrant.core.statistics.bootstrap.BATCH_ELEMENTS", 100)
    assert (np.concatenate(list(resample_counts(50, 30, 7))) == whole).all()


def test_interval_of_a_mean_is_the_textbook_one():
    p = calibrated(4000, seed=1)
    m = cal.measure(p, "accuracy")
    half = 1.96 * np.sqrt(m.value * (1 - m.value) / p.n)
    assert m.low == pytest.approx(m.value - half, abs=0.1 * half)
    assert m.high == pytest.approx(m.value + half, abs=0.1 * half)


def test_the_ends_of_an_ece_leave_half_of_the_rest_on_either_side():
    """Far from calibration its noise is normal, so that the widths are those of a normal distribution."""
    p = calibrated(4000, seed=1, temperature=0.3)
    halves = {}
    for confidence in (0.5, 0.95):
        m = cal.measure(p, "ece", confidence=confidence)
        halves[confidence] = (m.high - m.low) / 2
    assert halves[0.5] / halves[0.95] == pytest.approx(0.6745 / 1.96, rel=0.1)


def test_interval_holds_the_value_and_keeps_to_the_bounds():
    for spec in cal.measures.names():
        if cal.measures.make(spec).without_interval:
            continue
        p = suited(cal.measures.make(spec), calibrated(200, seed=2))
        m = cal.measure(p, spec, resamples=40)
        low, high = cal.measures.make(spec).bounds
        assert low <= m.low <= m.value <= m.high <= high, spec


def test_undefined_stays_undefined():
    p = cal.Predictions.from_probs([[0.9, 0.1], [0.8, 0.2]], [0, 0])
    m = cal.measure(p, "auroc_correct", resamples=20)
    assert np.isnan(m.value)
    assert m.to_dict()["value"] is m.to_dict()["low"] is None


def test_p_value_and_interval_agree_up_to_the_last_resample():
    rng = np.random.default_rng(0)
    for shift in np.linspace(-4, 4, 33):
        draws = shift + rng.normal(size=999)
        e = Estimate(value=shift, noise=Draws.from_resamples(shift, draws))
        low, high = e.limits()
        outside = low > 0 or high < 0
        assert outside or e.p_value() > 0.046
        assert not outside or e.p_value() < 0.054


def test_compare_aligns_rows_by_id():
    p = calibrated(300, seed=3)
    ids = np.arange(300)
    a = cal.Predictions.from_logits(p.logits, p.labels, ids=ids)
    order = np.random.default_rng(0).permutation(300)
    b = cal.Predictions.from_logits(p.logits[order] / 2, p.labels[order], ids=ids[order])
    same = cal.Predictions.from_logits(p.logits / 2, p.labels)
    by_id, by_order = cal.compare(a, b, "nll", resamples=50), cal.compare(p, same, "nll", resamples=50)
    assert (by_id.matched_by, by_order.matched_by) == ("ids", "order")
    assert by_id.to_dict() | {"matched_by": "order"} == by_order.to_dict()
    shifted = cal.Predictions.from_logits(p.logits[1:], p.labels[1:], ids=ids[1:])
    joined = cal.compare(a, shifted, "nll", resamples=50)
    assert (joined.n, joined.only_in_a, joined.only_in_b) == (299, 1, 0)
    assert joined.difference == 0


def test_compare_knows_which_way_is_better():
    p = calibrated(2000, seed=4)
    sharp = p.with_temperature(0.3)
    assert cal.compare(p, sharp, "ece", resamples=200).better == "a"
    assert cal.compare(sharp, p, "gap", resamples=200).better == "b"
    assert cal.compare(p, p, "accuracy", resamples=200).better == "neither"
    assert cal.compare(p, sharp, "entropy", resamples=200).better == "neither"


def test_consistency_tells_noise_from_miscalibration():
    good, bad = calibrated(500, seed=5), calibrated(500, seed=5, temperature=0.4)
    assert cal.calibration_test(good, "ece").p_value > 0.05
    assert cal.calibration_test(bad, "ece").p_value < 0.01
    assert cal.calibration_test(bad, "classwise", resamples=50).p_value < 0.05
    with pytest.raises(cal.InputError, match="lower is better"):
        cal.calibration_test(good, "auroc_correct")


@pytest.mark.slow
def test_consistency_p_values_are_uniform_under_perfect_calibration():
    values = [cal.calibration_test(calibrated(300, seed=s), "ece", resamples=200, seed=s).p_value for s in range(400)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(values) <= level) == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / 400))


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


def test_calibration_errors_need_no_resampled_rows(monkeypatch):
    def never(*_):
        raise AssertionError("rows were resampled")

    monkeypatch.setattr("calibrant.core.statistics.sampling.resample_counts", never)
    p = calibrated(300, seed=6)
    for spec in (
        "ece",
        "ece:scheme=mass,mass_rule=interp",
        "ece:dialect=netcal",
        "classwise",
        "mce",
        "ks",
        "smooth",
        "tace",
    ):
        m = cal.measure(p, spec)
        assert m.interval.startswith("normal noise of the residuals"), spec
        assert m.low < m.value < m.high, spec


@pytest.mark.parametrize("mass_rule", ["sort", "midpoint", "interp", "stride"])
def test_equal_mass_intervals_of_all_kinds_are_alike(mass_rule):
    """Without ties the four rules cut at nearly the same places."""
    p = calibrated(2000, seed=7, temperature=0.6)
    first, other = cal.measure(p, "ece:scheme=mass"), cal.measure(p, f"ece:scheme=mass,mass_rule={mass_rule}")
    width = first.high - first.low
    assert other.low == pytest.approx(first.low, abs=0.1 * width)
    assert other.high == pytest.approx(first.high, abs=0.1 * width)


def test_the_gate_reads_the_same_ends_one_sided():
    p = calibrated(800, seed=8, temperature=0.6)
    gate, both = cal.check(p, "ece", limit=0.05, confidence=0.95), cal.measure(p, "ece", confidence=0.90)
    assert (gate.low, gate.high) == pytest.approx((both.low, both.high), rel=1e-12)


def test_the_difference_of_two_errors_is_covered_where_one_is_almost_calibrated():
    """The paired bootstrap covered 59 of 100 here: it cannot see that noise raised one error and not the other."""
    covered = bootstrap = 0
    ece = cal.measures.make("ece")
    for seed in range(80):
        good = calibrated(500, seed=seed)
        sharp = cal.Predictions.from_logits(1.25 * good.logits, good.labels)
        c = cal.compare(sharp, good, "ece", seed=seed)
        rows = Sampling.of(good, seed=seed)
        draws = rows.resample(lambda w, a=sharp, b=good: ece.resample(b, w) - ece.resample(a, w), 100)
        low, high = Estimate(value=c.difference, noise=Draws.from_resamples(c.difference, draws)).limits()
        covered += c.low <= -0.0572 <= c.high  # from 500,000 rows
        bootstrap += low <= -0.0572 <= high
    assert covered >= 72
    assert bootstrap < 60


@pytest.mark.parametrize("spec", ["ece", "classwise", "rmsce", "ks", "smooth", "brier", "gap", "slope", "ece:norm=3"])
def test_a_model_differs_from_itself_by_exactly_0(spec):
    p = calibrated(400, seed=9)
    c = cal.compare(p, cal.Predictions.from_logits(p.logits.copy(), p.labels), spec)
    assert (c.difference, c.low, c.high, c.p_value, c.better) == (0, 0, 0, 1.0, "neither")


@pytest.fixture
def many(monkeypatch):
    """Rows enough to be measured in parts, if 5,000 were many."""
    monkeypatch.setattr("calibrant.core.statistics.sampling.MANY_ROWS", 5000)
    return calibrated(20_000, seed=10)


def test_many_rows_are_measured_in_parts(many):
    for spec in ("accuracy", "nll", "auroc_correct", "aurc"):
        parts, whole = cal.measure(many, spec), cal.measure(many, spec, resamples=300)
        assert "parts" in parts.interval
        assert whole.interval == "basic bootstrap, 300 resamples"
        width = whole.high - whole.low
        assert parts.high - parts.low == pytest.approx(width, rel=0.35), spec
        assert abs((parts.low + parts.high) - (whole.low + whole.high)) < 0.3 * width, spec


def test_many_rows_are_compared_in_parts(many):
    other = many.with_temperature(1.5)
    parts, whole = cal.compare(many, other, "nll"), cal.compare(many, other, "nll", resamples=300)
    assert parts.high - parts.low == pytest.approx(whole.high - whole.low, rel=0.35)
    assert parts.better == whole.better == "a"
    assert parts.p_value < 1e-6  # not floored by a number of resamples
    assert cal.compare(many, many, "accuracy").p_value == 1.0


def test_very_many_rows_take_fewer_resamples():
    ece_eq5 = cal.measures.make("sece:form=eq5")
    assert [affordable(ece_eq5.resamples, n) for n in (1000, 400_000, 2_000_000)] == [200, 200, 100]
    assert affordable(cal.measures.make("accuracy").resamples, 500_000) == 200


@pytest.mark.parametrize("resamples", [-1, 10**9])
def test_resamples_have_bounds(resamples):
    with pytest.raises(cal.InputError, match="to 1,000,000"):
        cal.measure(calibrated(50), "accuracy", resamples=resamples)


def test_a_calibration_loss_has_no_interval_and_says_why():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.5, 1, 300)
    p = cal.Predictions.from_confidence(scores, rng.random(300) < scores)
    m = cal.measure(p, "calibration")
    assert (m.low, m.high) == (None, None)
    assert "no interval of a calibration loss" in m.reason
    assert np.isnan(cal.compare(p, p, "calibration").p_value)


def test_the_interval_of_the_average_precision_holds_the_truth():
    """The basic bootstrap holds it in 87 % of these sets."""
    rng, covered, truth = np.random.default_rng(3), 0, 0.2296
    for _ in range(60):
        positive = rng.random(1000) < 0.05
        scores = 1 / (1 + np.exp(-rng.normal(size=1000) - 1.2 * positive))
        m = cal.measure(cal.Predictions.binary(scores, positive), "average_precision", resamples=100)
        covered += m.low <= truth <= m.high
    assert covered >= 55


def test_weights_of_any_size_give_finite_intervals():
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.uniform(0.5, 1, 200), rng.uniform(0.2, 0.5, 200)])
    weights = np.repeat([1e300, 1e-300], 200)  # some bins hold rows of almost no weight alone
    p = cal.Predictions.from_confidence(scores, rng.random(400) < scores, weights=weights)
    for name in ("avgce", "reliability", "rmsce", "mce", "ece"):
        m = cal.measure(p, name)
        assert np.isfinite([m.value, m.low, m.high]).all(), name
        assert m.low <= m.value <= m.high


@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_resampled_clusters_are_those_of_their_rows(weighted):
    rng = np.random.default_rng(1)
    z, clusters = rng.normal(size=(400, 3)), rng.integers(30, size=400)
    weights = rng.random(400) if weighted else None
    p = cal.Predictions.from_logits(z, rng.integers(0, 3, 400), clusters=clusters, weights=weights)
    for name in ("accuracy", "nll"):
        m = make(name)
        rows = Sampling.of(p, seed=3, resamples=50, subtracted=True)
        draws = rows.resample(lambda counts, m=m: m.resample(p, counts), 50)
        slow = Draws.from_resamples(m(p), draws, freedom=rows.freedom)
        assert m.estimate(p, rows).limits() == pytest.approx(Estimate(value=m(p), noise=slow).limits(), rel=1e-12)


def test_extreme_weights_and_few_rows_end_in_a_number_or_a_named_error():
    p = cal.Predictions.from_probs([[1.9e-145, 1], [1, 0], [1, 2.9e-140]], labels=[0, 1, 0], weights=[1e-300, 1, 1])
    assert 0 <= cal.measure(p, "tace", resamples=0).value <= 1
    for seed in range(60):
        rng = np.random.default_rng(seed)
        z, y, w = 700 * rng.normal(size=12), rng.integers(0, 2, 12), rng.choice([0, 1e-300, 1, 1e300], 12)
        with suppress(cal.InputError):  # no fit, or no row that counts: said in words
            q = cal.Predictions.binary(z, y, logits=True, weights=w)
            assert np.isfinite(cal.measure(q, "slope", resamples=0).value)
        s = rng.random(12)
        assert cal.measure(cal.Predictions.binary(s, y), "emax", resamples=0).value <= 1
