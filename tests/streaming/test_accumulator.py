"""A stream gives what the whole gives, however it is cut, merged and saved."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.data import DEMO_TEST
from calibrant.streaming.streamable import STREAMED

MORE = [
    "error",
    "entropy",
    "avgce",
    "overconfidence",
    "ece:bins=50,closed=left",
    "classwise:norm=2",
    "ece:norm=2",
    "eaurc",
]
SPECS = [*STREAMED, *MORE]
RANKED = ("auroc_correct", "aurc", "eaurc")  # from a histogram
NEED_ALL_ROWS = [
    "ks",
    "fpr95",
    "ece:scheme=mass",
    "smooth",
    "refinement",
    "uncertainty",
    "ece:dialect=netcal",
    "tace",
]


@pytest.fixture(scope="module")
def p():
    return cal.Predictions.load(DEMO_TEST)


def streamed(p, cuts):
    sums = cal.Accumulator(SPECS)
    for rows in np.split(np.arange(p.n), cuts):
        sums.update(p.take(rows))
    return sums


@pytest.mark.parametrize("cuts", [[], [1, 2, 3], [1000, 1001, 3500]])
def test_equal_to_the_batch_result_to_float_accuracy(p, cuts):
    for m in streamed(p, cuts).measure_all():
        exact = cal.measure(p, m.measure, resamples=0).value
        assert m.value == pytest.approx(exact, abs=2e-4 if m.measure in RANKED else 1e-13)


def test_merge_is_the_stream_of_both_and_changes_neither(p):
    a, b = streamed(p.take(np.arange(1500)), [700]), streamed(p.take(np.arange(1500, p.n)), [])
    merged = a.merge(b)
    assert (a.n, b.n, merged.n) == (1500, p.n - 1500, p.n)
    assert a.measure("ece").value == pytest.approx(cal.measure(p.take(np.arange(1500)), "ece", resamples=0).value)
    assert merged.measure("classwise").value == pytest.approx(cal.measure(p, "classwise", resamples=0).value, abs=1e-13)


def test_state_has_a_fixed_size_and_survives_json(p, tmp_path):
    small, large = streamed(p.take(np.arange(500)), []), streamed(p, [100, 200])
    assert {k: v.shape for k, v in small.sums.items()} == {k: v.shape for k, v in large.sums.items()}
    large.save(tmp_path / "state.json")
    back = cal.Accumulator.load(tmp_path / "state.json")
    assert [m.to_dict() for m in back.measure_all()] == [m.to_dict() for m in large.measure_all()]


def test_intervals_are_close_to_the_bootstrap(p):
    for m in streamed(p, []).measure_all():
        if m.measure in ("mce", "avgce", "classwise:norm=2"):
            continue  # decided by bins of a few samples, where normal noise is rough
        whole = cal.measure(p, m.measure)
        width = whole.high - whole.low
        assert abs(m.low - whole.low) < 0.3 * width
        assert abs(m.high - whole.high) < 0.3 * width


def test_histogram_counts_every_prediction(p):
    wrong, right = streamed(p, [10]).histogram
    assert (wrong.sum(), right.sum()) == ((~p.correct).sum(), p.correct.sum())


@pytest.mark.parametrize("spec", NEED_ALL_ROWS)
def test_measures_that_need_all_rows_are_refused(spec):
    with pytest.raises(cal.InputError, match="needs all rows at once"):
        cal.Accumulator([spec])


def test_misuse_is_explained(p, tmp_path):
    with pytest.raises(cal.InputError, match="at least one batch"):
        cal.Accumulator(["ece"]).measure("ece")
    with pytest.raises(cal.InputError, match="the same measures"):
        cal.Accumulator(["ece"]).merge(cal.Accumulator(["mce"]))
    sums = streamed(p, [])
    with pytest.raises(cal.InputError, match="10 classes"):
        sums.update(cal.Predictions.from_logits(2 * np.eye(3), [0, 1, 2]))
    with pytest.raises(cal.InputError, match="list it at the start"):
        sums.measure("ece:bins=77")
    with pytest.raises(cal.InputError, match="something else"):
        cal.Accumulator.from_json("[]")
    with pytest.raises(cal.InputError, match="version 4"):
        cal.Accumulator.from_json('{"calibrant_accumulator": 9}')
    with pytest.raises(cal.InputError, match="no such file"):
        cal.Accumulator.load(tmp_path / "absent.json")


def test_a_ratio_of_sums_is_that_of_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    s, w = rng.beta(1, 4, 600), rng.random(600) + 0.1
    y = rng.random(600) < 0.9 * s
    a = cal.Accumulator(["oe_ratio"])
    for i in range(3):
        a.update(cal.Predictions.binary(s[i::3], y[i::3], weights=w[i::3]))
    a.save(tmp_path / "sums.json")
    m = cal.Accumulator.load(tmp_path / "sums.json").measure("oe_ratio")
    whole = cal.measure(cal.Predictions.binary(s, y, weights=w), "oe_ratio")
    assert (m.value, m.low, m.high) == pytest.approx((whole.value, whole.low, whole.high), rel=1e-3)
    changed = (tmp_path / "sums.json").read_text().replace('"oe_ratio": [', '"oe_ratio": [9')
    with pytest.raises(cal.InputError, match="changed or damaged"):
        cal.Accumulator.from_json(changed)
