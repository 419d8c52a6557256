"""What may be asked for: names, measures, functions, sets; and what is refused with a reason."""

import sys

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.measures.ece import ECE
from calibrant.measuring.standard import STANDARD


@pytest.fixture
def p():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(150, 4))
    return cal.Predictions.from_logits(logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1))


def very_sure(p):
    """Share of rows with a confidence above 0.9."""
    return (p.confidence > 0.9).mean()


def test_all_standard_measures_unless_told_otherwise(p):
    plain, named = cal.measure(p, "standard", resamples=20), cal.measure(p, STANDARD, resamples=20)
    assert [m.measure for m in plain] == list(STANDARD)
    assert plain == named
    assert plain == cal.measure(p, STANDARD, resamples=20)


def test_the_set_of_the_benchmark_study(p):
    assert [m.measure for m in cal.measure_set(p)] == list(STANDARD)


def test_several_names_give_several_measurements(p):
    several = cal.measure(p, ("ece", "nll"), resamples=20)
    assert several == [cal.measure(p, "ece", resamples=20), cal.measure(p, "nll", resamples=20)]
    assert isinstance(several, cal.types.Measurements)
    assert cal.measure(p, ["ece"], resamples=0) == [cal.measure(p, "ece", resamples=0)]
    with pytest.raises(cal.InputError, match="measure: expected one of"):
        cal.measure(p, "standart")


def test_a_measurement_formats_and_compares_as_its_value(p):
    m = cal.measure(p, "ece")
    assert f"{m:.4f}" == f"{m.value:.4f}"
    assert f"{m}" == str(m)
    assert float(m) == m.value
    for limit in (m.value, np.float64(m.value), np.float32(0), 1):
        assert (m < limit, m <= limit, m > limit, m >= limit) == (
            m.value < limit,
            m.value <= limit,
            m.value > limit,
            m.value >= limit,
        )
    with pytest.raises(TypeError):
        m < cal.measure(p, "mce")  # noqa: B015


def test_results_become_data_frames(p):
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    several = cal.measure(p, ["ece", "nll"], resamples=0)
    compared = cal.compare(p, p.with_temperature(2), ["ece", "nll"], resamples=20)
    tests = cal.calibration_test(p, ["ece", "atb"], resamples=20)
    single = cal.check(p, "ece", limit=0.5, resamples=20)
    for result, rows in ((several, 2), (compared, 2), (tests, 2), (single, 1), (several[0], 1), (compared[0], 1)):
        frame = result.to_polars()
        assert isinstance(frame, pl.DataFrame)
        assert frame.to_dicts() == result.records()
        assert len(result.records()) == rows
        other = result.to_pandas()
        assert isinstance(other, pd.DataFrame)
        assert list(other.columns) == frame.columns
    assert several.to_polars()["value"].to_list() == [m.value for m in several]
    assert several.to_polars()["low"].to_list() == [None, None]


def test_without_pandas_an_error_names_the_other_frame(p, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(cal.InputError, match=r"to_pandas: expected pandas, .* or call \.to_polars\(\)"):
        cal.measure(p, "ece", resamples=0).to_pandas()


def test_a_function_is_a_measure(p):
    m = cal.measure(p, very_sure, resamples=200)
    assert m.measure == "very_sure"
    assert m.definition == "Share of rows with a confidence above 0.9"
    assert m.low < m.value == very_sure(p) < m.high
    assert cal.check(p, very_sure, limit=0.99).state == "holds"
    assert (
        cal.compare(p, p.with_temperature(3), very_sure, resamples=50).better == "neither"
    )  # nobody said which way is better
    assert [m.measure for m in cal.measure(p, ["ece", very_sure], resamples=0)] == ["ece", "very_sure"]


def test_a_function_must_return_a_number(p):
    with pytest.raises(cal.InputError, match=r"one number, got ndarray\. To fix it: return a float"):
        cal.measure(p, lambda p: p.confidence)


@pytest.mark.parametrize(
    "ask",
    [cal.fit, cal.choose, cal.watch, cal.decompose, cal.report, cal.Accumulator().update],
    ids=lambda ask: ask.__name__,
)
def test_arrays_are_not_predictions(ask):
    with pytest.raises(InputError, match="a Predictions object"):
        ask(np.array([0.2, 0.8]))


def test_labels_in_place_of_a_measure_are_not_the_first_complaint():
    with pytest.raises(InputError, match="a Predictions object"):
        cal.measure(np.array([0.2, 0.8]), np.array([0, 1]))
    with pytest.raises(InputError, match="a Predictions object"):
        cal.decide(np.array([0.2, 0.8]), cost="fn=2,fp=1")


def test_a_class_is_not_a_measure(p):
    with pytest.raises(cal.InputError, match=r"got the class ECE\. To fix it: write ECE\(\)"):
        cal.measure(p, ECE)
    with pytest.raises(cal.InputError, match="got int"):
        cal.measure(p, 3)


@pytest.mark.parametrize("spec", ["ece:bins=1000000000", "mce:bins=100001", "classwise:bins=1000000000", "ece:bins=0"])
def test_bins_have_bounds(p, spec):
    with pytest.raises(cal.InputError, match="bins: expected 1 to 100,000"):
        cal.measure(p, spec)


def test_bins_of_many_classes_have_lower_bounds():
    wide = cal.Predictions.from_logits(np.zeros((3, 1000)), [0, 1, 2])
    for spec in ("classwise:bins=50000", "classwise:bins=50000,scheme=mass", "ace_nixon:bins=50000"):
        with pytest.raises(cal.InputError, match=r"expected 1 to 20,000 \(for 1,000 classes\)"):
            cal.measure(wide, spec, resamples=0)


def test_decomposition_has_the_same_bounds(p):
    with pytest.raises(cal.InputError, match="1 to 100,000"):
        cal.decompose(p, bins=10**9)


def test_nll_is_exact_from_logits_and_floored_from_probabilities():
    logits = np.array([[0.0, 100.0], [0.0, 0.0]])
    p = cal.Predictions.from_logits(logits, [0, 0])
    exact = (100 + np.log(2)) / 2
    assert cal.measure(p, "nll", resamples=0).value == pytest.approx(exact, rel=1e-14)
    floored = cal.Predictions.from_probs([[0.0, 1.0], [0.5, 0.5]], [0, 0])
    assert cal.measure(floored, "nll", resamples=0).value == pytest.approx((-np.log(1e-12) + np.log(2)) / 2)
    assert "exact from logits, probabilities floored at 1e-12" in cal.measures.make("nll").definition


def test_cross_fitted_losses_of_maps_that_give_logits_are_exact():
    """One row is wrong by 200 nats: floored it would count 27.6."""
    from calibrant.repairing.cross_fit import cross_fit

    logits = np.zeros((40, 3))
    logits[:, 0] = 2.0
    logits[0] = [0.0, 200.0, 0.0]
    p = cal.Predictions.from_logits(logits, np.zeros(40, dtype=int))
    q = cross_fit(p, "identity")
    logs = q.true_log_prob
    assert q.score_type == "logits"
    assert logs[0] == pytest.approx(-200)


def test_fit_knows_auto_and_the_names_that_others_use(p):
    chosen = cal.fit(p, "auto")
    assert chosen.to_dict() == cal.choose(p).map.to_dict()
    assert cal.fit(p, "sigmoid").to_dict() == cal.fit(p, "platt").to_dict()
    with pytest.raises(cal.InputError, match="one map per group"):
        cal.fit(p, "auto", by_group=True)
    with pytest.raises(cal.InputError, match=r"write Platt\(\)"):
        cal.fit(p, cal.calibrators.find("platt"))
