"""Streams of every task, with weights: the same values as the whole; what streams lead to."""

import json
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.json import write_state
from calibrant.streaming.accumulators import VERSION

EMPTY = {"by": ["a"], "measures": None, "clusters_split": False, "files": {}, "each": []}
SMALL = ["accuracy", "nll", "brier", "gap", "ece", "mce", "reliability", "debiased"]


def build(task, n=600, seed=0, **extras):
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, 4))
    if task == "multiclass":
        return cal.Predictions.from_logits(z, np.where(rng.random(n) < 0.6, z.argmax(axis=1), 0), **extras)
    if task == "choice":
        there = np.arange(4) < rng.integers(2, 5, n)[:, None]
        best = np.where(there, z, -np.inf).argmax(axis=1)
        return cal.Predictions.from_logits(z, np.where(rng.random(n) < 0.6, best, 0), mask=there, **extras)
    s = rng.beta(2, 2, n)
    make = cal.Predictions.binary if task == "binary" else cal.Predictions.from_confidence
    return make(s, (rng.random(n) < s**1.5).astype(int), **extras)


@pytest.mark.parametrize("task", ["multiclass", "binary", "confidence", "choice"])
@pytest.mark.parametrize("weights", [None, "whole", "shares"])
def test_every_shape_and_weight_gives_the_values_of_the_whole(task, weights):
    rng = np.random.default_rng(5)
    w = {None: None, "whole": rng.integers(0, 4, 600), "shares": rng.random(600)}[weights]
    whole = build(task, weights=w)
    sums = cal.Accumulator()
    for rows in np.split(np.arange(600), [1, 2, 300]):
        given = None if w is None else w[rows]
        if given is not None and not given.any():
            continue  # a batch of weight 0 is refused by predictions themselves
        extras = {"weights": given}
        if task == "choice":
            extras["mask"] = whole.row_data.option_mask[rows]
        make = {"binary": cal.Predictions.binary, "confidence": cal.Predictions.from_confidence}.get(task)
        first = whole.values[rows] if make is None else whole.score[rows]
        sums.update((make or cal.Predictions.from_logits)(first, whole.labels[rows], **extras))
    again = cal.Accumulator.from_json(sums.to_json())
    assert again.to_json() == sums.to_json()
    for m in again.measure_all():
        exact = cal.measure(whole, m.measure, resamples=0)
        near = 2e-3 if m.measure in ("auroc_correct", "aurc", "roc_auc") else 1e-12
        assert m.value == pytest.approx(exact.value, abs=near), m.measure
        assert m.definition.startswith(exact.definition)
        assert m.low <= m.value <= m.high
    assert ("classwise" in again.specs) == (task in ("multiclass", "binary"))
    assert ("roc_auc" in again.specs, "aurc" in again.specs) == (task == "binary", task != "binary")


@pytest.mark.parametrize("what", ["ece", "brier", "auroc_correct", "aurc"])
def test_intervals_with_weights_are_those_of_the_whole(what):
    p = build("confidence", n=3000, weights=np.random.default_rng(1).random(3000))
    sums = cal.Accumulator([what])
    sums.update(p)
    whole, streamed = cal.measure(p, what), sums.measure(what)
    width = whole.high - whole.low
    assert abs(streamed.low - whole.low) < 0.3 * width
    assert abs(streamed.high - whole.high) < 0.3 * width


def test_the_error_of_a_ranking_is_a_bound():
    rng = np.random.default_rng(0)
    s = 0.5 + 0.002 * rng.random(2000)  # all in very few bins
    p = cal.Predictions.from_confidence(s, rng.random(2000) < 0.5 + 100 * (s - 0.501))
    sums = cal.Accumulator(["auroc_correct", "aurc"])
    sums.update(p)
    for what in sums.specs:
        m, exact = sums.measure(what), cal.measure(p, what, resamples=0).value
        error = float(re.search(r"off by at most ([\d.e-]+)", m.definition)[1])
        assert 0 < abs(m.value - exact) <= 1.06 * error  # it is said with one digit
        assert m.low <= exact <= m.high


@pytest.mark.parametrize("weights", [None, "shares"])
def test_roc_auc_of_a_stream(weights):
    rng = np.random.default_rng(3)
    p = build("binary", n=3000, weights=None if weights is None else rng.random(3000))
    q = cal.Predictions.from_probs(np.stack([1 - p.score, p.score], axis=1), p.labels)
    for whole in (p, q) if weights is None else (p,):
        sums = cal.Accumulator(["roc_auc", "auroc_correct:scope=top"])
        sums.update(whole)
        m, exact = cal.Accumulator.from_json(sums.to_json()).measure("roc_auc"), cal.measure(whole, "roc_auc")
        error = float(re.search(r"off by at most ([\d.e-]+)", m.definition)[1])
        assert abs(m.value - exact.value) <= 1.06 * error + 1e-12
        width = exact.high - exact.low
        assert (m.low, m.high) == pytest.approx((exact.low, exact.high), abs=0.3 * width)
    assert sums.check("roc_auc", limit=0.1, side="min").state == "holds"
    with pytest.raises(cal.InputError):
        cal.Accumulator(["roc_auc"]).update(build("confidence"))


def test_what_a_histogram_does_not_know_is_less_than_noise_at_a_hundred_million_rows():
    from calibrant.streaming.sums import FINE, fine_scores

    rng, s = np.random.default_rng(0), fine_scores()
    z = np.log(s / (1 - s))
    mass = np.exp(-(z**2) / 5)  # calibrated scores, log-odds of standard deviation 1.6
    halves = []
    for n in (10**4, 10**6, 10**8):
        sums = cal.Accumulator(["roc_auc"])
        sums.update(cal.Predictions.binary([0.3, 0.6], [0, 1]))
        (name,) = (name for name in sums.sums if name.startswith("ranking"))
        sums.sums[name] = np.stack([rng.poisson(n * mass / mass.sum() * p) for p in (s, 1 - s)]).astype(float)
        sums.n = sums.units = int(sums.sums[name].sum())
        sums.total = sums.square = sums.unit_square = float(sums.n)
        sums.sums["histogram"][0] += 1
        m, e = sums.measure("roc_auc"), sums.estimate("roc_auc")
        halves.append((m.high - m.low) / 2)
        assert e.margin < 0.4 * halves[-1]
        assert len(sums.to_json()) < 12 * FINE
    assert halves[0] > 8 * halves[1] > 40 * halves[2]


def test_weights_join_rows_without_in_a_ranking():
    p, w = build("binary", n=3000), np.random.default_rng(2).random(1500)
    sums = cal.Accumulator(["roc_auc"])
    sums.update(p.take(np.arange(1500)))
    part = cal.Predictions.binary(p.score[1500:], p.labels[1500:], weights=w)
    sums.update(part)
    whole = cal.Predictions.binary(p.score, p.labels, weights=np.concatenate([np.ones(1500), w]))
    m, exact = cal.Accumulator.from_json(sums.to_json()).measure("roc_auc"), cal.measure(whole, "roc_auc")
    assert m.value == pytest.approx(exact.value, abs=1e-4)
    assert m.high - m.low == pytest.approx(exact.high - exact.low, rel=0.2)


def test_scope_top_of_binary_scores():
    p, spec = build("binary"), "ece:scope=top"
    sums = cal.Accumulator(["ece", spec, "auroc_correct:scope=top"])
    sums.update(p)
    back = cal.Accumulator.from_json(sums.to_json())
    assert back.measure(spec).value == pytest.approx(cal.measure(p, spec, resamples=0).value)
    assert back.measure(spec).value != back.measure("ece").value


def test_mixed_shapes_are_refused():
    sums = cal.Accumulator(["ece"])
    sums.update(build("binary"))
    sums.update(None)
    assert sums.n == 600
    with pytest.raises(cal.InputError, match=r"expected scores of the positive class as before, got confidences"):
        sums.update(build("confidence"))
    other = cal.Accumulator(["ece"])
    other.update(build("confidence"))
    with pytest.raises(cal.InputError, match="as before"):
        sums.merge(other)
    with pytest.raises(cal.InputError, match="all classes"):
        cal.Accumulator(["classwise"]).update(build("confidence"))


def test_keys_do_not_mix_shapes():
    each, other = (cal.Accumulators(by="day", measures=["ece"]) for _ in range(2))
    each.update(build("binary"), {"day": "mon"})
    with pytest.raises(cal.InputError, match="expected scores of the positive class as before, got confidences"):
        each.update(build("confidence"), {"day": "tue"})
    assert len(each) == 1
    other.update(build("confidence"), {"day": "tue"})
    with pytest.raises(cal.InputError, match="as before"):
        each.merge(other)


def test_sums_lead_to_limits_comparisons_and_figures():
    a, b = cal.Accumulator(), cal.Accumulator()
    p, q = build("confidence", n=3000), build("confidence", n=2000, seed=9)
    a.update(p)
    b.update(q)
    for what in ("ece", "brier", "auroc_correct"):
        of_sums, whole = a.compare(b, what), cal.compare(p, q, what, paired=False)
        assert of_sums.difference == pytest.approx(whole.difference, abs=1e-3)
        assert (of_sums.n, of_sums.n_b, of_sums.paired) == (3000, 2000, False)
        assert of_sums.high - of_sums.low == pytest.approx(whole.high - whole.low, rel=0.3)
    assert a.check("ece", limit=0.5).state == "holds"
    assert a.check("accuracy", limit=0.9, side="min").state == "violated"
    one, same = a.check("ece", limit=0.1), cal.check(p, "ece", limit=0.1)
    assert (one.low, one.high) == pytest.approx((same.low, same.high), abs=0.01)
    rows = a.to_predictions()
    assert rows.weights.sum() == 3000
    assert cal.measure(rows, "accuracy", resamples=0).value == pytest.approx(p.outcome.mean())
    assert "overconfident" in json.dumps(a.plot().to_dict())
    with pytest.raises(cal.InputError, match="a figure of predictions"):
        a.plot("training_curves")
    with pytest.raises(cal.InputError, match="limit"):
        a.check("ece", limit=float("inf"))


def test_accumulators_by_day_and_segment(tmp_path):
    each = cal.Accumulators(by=("day", "segment"), measures=["ece", "accuracy"])
    monday, tuesday = build("confidence"), build("confidence", seed=1, groups=["a", "b"] * 300)
    each.update(monday, {"day": "mon", "segment": ["a", "b"] * 300})
    each.update(tuesday, {"day": "tue"})
    each.update(None)
    assert [key for key, _ in each.items()] == [("mon", "a"), ("mon", "b"), ("tue", "a"), ("tue", "b")]
    assert each["tue", "b"].measure("accuracy").value == pytest.approx(tuesday.outcome[1::2].mean())
    assert each.total().n == 1200
    assert each.total({"segment": "a"}).measure("accuracy").value == pytest.approx(
        (monday.outcome[::2].mean() + tuesday.outcome[::2].mean()) / 2
    )
    both = each.merge(each)
    assert both["mon", "a"].n == 600
    assert each.check("ece", limit=0.9)["mon", "a"].state == "holds"
    assert set(each.compare(both, "ece")) == set(each.compare(each.total(), "ece")) == {k for k, _ in each.items()}
    each.save(tmp_path / "each.json")
    again = cal.Accumulators.load(tmp_path / "each.json")
    assert again.to_json() == each.to_json()
    text = each.to_prometheus()
    assert 'calibrant_rows{day="mon",segment="a"} 300\n' in text
    assert text.count("# TYPE calibrant_ece gauge") == 1
    assert re.search(r'^calibrant_ece_low\{day="tue",segment="b"\} 0\.\d+$', text, re.M)
    assert "mon, a" in json.dumps(each.plot().to_dict())


def test_names_in_prometheus_are_escaped():
    each = cal.Accumulators(by="the day", measures=["ece:bins=5"])
    each.update(build("confidence"), {"the day": 'a "b"\n\\'})
    line = next(line for line in each.to_prometheus().splitlines() if line.startswith("calibrant_ece{"))
    assert line.startswith(r'calibrant_ece{the_day="a \"b\"\n\\",options="bins=5"} 0.')


def test_a_file_of_accumulators_runs_no_file_that_it_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("open('it ran', 'w').close()")
    state = write_state("accumulators", VERSION, EMPTY | {"measures": ["./mine.py"]})
    with pytest.raises(cal.InputError, match=r"would have run the Python code in .*mine\.py"):
        cal.Accumulators.from_json(state)
    assert not (tmp_path / "it ran").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"by": [1]},
        {"by": "a"},
        {"measures": [1]},
        {"clusters_split": 0},
        {"each": [{}]},
        {"each": [{"key": ["x"], "state": {}}]},
        {"each": [{"key": ["x", "y"], "state": {}}]},
        {"files": []},
    ],
)
def test_other_files_are_refused(change):
    with pytest.raises(cal.InputError, match="damaged"):
        cal.Accumulators.from_json(write_state("accumulators", VERSION, EMPTY | change))
    with pytest.raises(cal.InputError, match="changed or damaged"):
        cal.Accumulators.from_json(json.dumps({"calibrant_accumulators": VERSION} | EMPTY))
    with pytest.raises(cal.InputError, match="something else"):
        cal.Accumulators.from_json("[]")


def test_misuse_of_keys_is_explained(tmp_path):
    each = cal.Accumulators(by=("day", "segment"))
    p = build("confidence")
    for keys, says in [({"day": "x"}, "a value of segment"), ({"day": "x", "segment": ["a"]}, "one for each row")]:
        with pytest.raises(cal.InputError, match=says):
            each.update(p, keys)
    with pytest.raises(cal.InputError, match="a key that occurred"):
        each["x"]
    with pytest.raises(cal.InputError, match="different names"):
        cal.Accumulators(by=())
    with pytest.raises(cal.InputError, match="needs all rows"):
        cal.Accumulators(by="day", measures=["ks"])
    with pytest.raises(cal.InputError, match="same names and measures"):
        each.merge(cal.Accumulators(by="day"))
    with pytest.raises(cal.InputError, match="names of"):
        each.total({"hour": "1"})
    with pytest.raises(cal.InputError, match="no such file"):
        cal.Accumulators.load(tmp_path / "no.json")
