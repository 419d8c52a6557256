"""Rows in clusters: an accumulator fed image by image has the intervals of all images at once."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.streaming import accumulator

MEASURES = ["accuracy", "nll", "brier", "gap", "ece", "rmsce", "reliability", "classwise:bins=10"]


def images(n=60, side=12, seed=0, effect=0.8):
    """Scores of pixels that share an effect of their image, (n, 3, side, side), and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3, side, side)) + effect * rng.normal(size=(n, 3, 1, 1))
    right = rng.random((n, side, side)) < 1 / (1 + np.exp(-1 - effect * rng.normal(size=(n, 1, 1))))
    return z, np.where(right, z.argmax(axis=1), rng.integers(0, 3, (n, side, side)))


def fed(z, y, size, measures=MEASURES):
    sums = cal.Accumulator(measures)
    for first in range(0, len(z), size):
        sums.update(cal.Predictions.from_logits(z[first : first + size], y[first : first + size], axis=1))
    return sums


@pytest.mark.parametrize("size", [1, 7])
def test_images_in_batches_give_the_intervals_of_all_at_once(size):
    z, y = images()
    whole = cal.Predictions.from_logits(z, y, axis=1)
    sums = cal.Accumulator.from_json(fed(z, y, size).to_json())
    assert (sums.units, sums.n) == (60, whole.n)
    for m in sums.measure_all():
        exact = cal.measure(whole, m.measure)
        assert m.value == pytest.approx(exact.value, abs=1e-12)
        width = exact.high - exact.low
        assert m.high - m.low == pytest.approx(width, rel=0.15), m.measure
        assert (m.low, m.high) == pytest.approx((exact.low, exact.high), abs=0.12 * width), m.measure


def test_a_ratio_of_sums_knows_its_clusters():
    rng = np.random.default_rng(1)
    cluster, s = np.repeat(np.arange(80), 25), rng.beta(2, 4, 2000)
    y = rng.random(2000) < s * np.exp(0.4 * rng.normal(size=80))[cluster].clip(0, 1.5)
    sums = cal.Accumulator(["oe_ratio", "gap"])
    for rows in np.split(np.arange(2000), [500, 1000]):
        sums.update(cal.Predictions.binary(s[rows], y[rows], clusters=cluster[rows]))
    for m in sums.measure_all():
        exact = cal.measure(cal.Predictions.binary(s, y, clusters=cluster), m.measure)
        assert (m.low, m.high) == pytest.approx((exact.low, exact.high), abs=0.05 * (exact.high - exact.low))


def test_one_image_keeps_its_cluster():
    z, y = images(1)
    p = cal.Predictions.from_logits(z, y, axis=1)
    assert p.clusters.tolist() == [0] * p.n
    m = cal.measure(p, "accuracy")
    assert (m.low, m.reason) == (None, "too few clusters for an interval: 1, at least 10 are needed")
    sums = fed(z, y, 1)
    assert sums.measure("accuracy").reason == m.reason
    alone = cal.Predictions.from_logits(z[0, :, 0, 0][None], y[0, :1, 0])
    assert alone.clusters is None


def test_weights_and_rows_without_clusters_count_as_units():
    z, y = images(30)
    p = cal.Predictions.from_logits(z, y, axis=1)
    sums = cal.Accumulator(["accuracy", "ece"])
    sums.update(p)
    sums.update(cal.Predictions.from_logits(p.logits[:500], p.labels[:500]))
    assert (sums.units, sums.unit_square) == (530, 30 * 144**2 + 500)
    w = np.random.default_rng(0).random(p.n)
    weighted = cal.Accumulator(["accuracy", "ece"])
    q = cal.Predictions.from_logits(p.logits, p.labels, clusters=p.clusters, weights=w)
    weighted.update(q)
    for m in weighted.measure_all():
        exact = cal.measure(q, m.measure)
        assert m.high - m.low == pytest.approx(exact.high - exact.low, rel=0.12)


def named(names, n=600):
    rng = np.random.default_rng(0)
    s = rng.random(n)
    return cal.Predictions.from_confidence(s, rng.random(n) < s, clusters=np.repeat(names, n // len(names)))


def test_a_cluster_that_comes_again_leaves_no_interval():
    first, second = [f"p{i}" for i in range(20)], [f"q{i}" for i in range(20)]
    sums = cal.Accumulator(["ece", "accuracy"])
    sums.update(named(first))
    sums.update(named(second))
    assert sums.measure("ece").low is not None
    before = cal.Accumulator.from_json(sums.to_json())
    for again in (named(["p3", *second[:9]]), named(["p3", *(f"new{i}" for i in range(9))])):
        both = cal.Accumulator.from_json(before.to_json())
        both.update(again)
        m = both.measure("ece")
        assert (m.low, m.reason) == (None, accumulator.AGAIN)
        assert both.check("ece", limit=0.5).state == "inconclusive"
        assert both.check("ece", limit=0.5).reason == accumulator.AGAIN
    other = cal.Accumulator(["ece", "accuracy"])
    other.update(named(first))
    assert before.merge(other).measure("ece").reason == accumulator.AGAIN
    assert np.isnan(before.compare(before.merge(other), "ece").p_value)


def test_one_row_at_a_time_of_one_cluster_is_noticed():
    sums = cal.Accumulator(["ece"])
    for i in range(30):
        sums.update(cal.Predictions.from_confidence([0.5], [i % 2], clusters=["a" if i in (3, 7) else f"b{i}"]))
    assert sums.measure("ece").reason == accumulator.AGAIN


def test_clusters_that_may_continue_leave_no_interval(monkeypatch):
    sums = cal.Accumulator(["ece"])
    sums.update(named(range(20)), open_clusters=True)
    assert cal.Accumulator.from_json(sums.to_json()).measure("ece").reason == accumulator.OPEN
    monkeypatch.setattr(accumulator, "MOST_NAMES", 30)
    many = cal.Accumulator(["ece"])
    for batch in range(2):
        many.update(named([f"{batch} {i}" for i in range(20)]))
    assert many.measure("ece").reason == accumulator.TOO_MANY_NAMES
    assert not many.clusters


def test_sums_that_do_not_keep_the_noise_of_clusters_say_so():
    z, y = images(20, 6)
    sums = fed(z, y, 5, ["auroc_correct", "ece:bins=300", "classwise:bins=90", "ece"])
    ranking, many, classes, ece = sums.measure_all()
    assert (ranking.low, ranking.reason) == (
        None,
        "rows came in clusters, whose noise a histogram of scores does not keep",
    )
    assert many.reason == classes.reason == "rows came in clusters, whose noise sums keep for at most 256 bins"
    assert ece.low < ece.value < ece.high
    assert cal.Accumulator.from_json(sums.to_json()).measure("ece") == ece
    assert "there is no test against chance" in str(cal.report(sums).to_dict())


def test_a_cluster_in_several_keys_leaves_the_total_without_interval():
    z, y = images(20, 6)
    p = cal.Predictions.from_logits(z, y, axis=1)
    each, apart = (cal.Accumulators(by="part", measures=["ece"]) for _ in range(2))
    each.update(p, {"part": np.where(np.arange(p.n) % 2, "odd", "even")})
    apart.update(p, {"part": np.where(p.clusters < 10, "first", "last")})
    assert each["odd"].measure("ece").low is not None
    again = cal.Accumulators.from_json(each.to_json())
    assert again.total().measure("ece").reason == "a cluster has rows in more than one key"
    assert again.total({"part": "odd"}).measure("ece").low is not None
    assert apart.total().measure("ece").low is not None


def test_comparisons_of_clustered_streams_are_those_of_the_rows():
    a, b = (cal.Predictions.from_logits(*images(40, 8, seed, effect), axis=1) for seed, effect in ((1, 0.5), (2, 1.0)))
    sums = [cal.Accumulator(["accuracy", "ece"]) for _ in range(2)]
    for one, p in zip(sums, (a, b), strict=True):
        one.update(p)
    for what in ("accuracy", "ece"):
        of_sums, whole = sums[0].compare(sums[1], what), cal.compare(a, b, what, paired=False)
        assert of_sums.difference == pytest.approx(whole.difference, abs=1e-12)
        assert of_sums.high - of_sums.low == pytest.approx(whole.high - whole.low, rel=0.15)
    assert json.loads(sums[0].to_json())["clustered"]
