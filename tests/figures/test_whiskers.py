"""Whiskers of reliability diagrams where rows come in clusters: the pixels of an image, the scans of a patient."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.statistics.clustered_shares import effective_rows
from calibrant.figures import make


def images(n, seed=0, side=20):
    """P(positive) of pixels, whose truth is off by an effect of their image."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, side, side)) + 0.7 * rng.normal(size=(n, 1, 1))
    y = rng.random(z.shape) < 1 / (1 + np.exp(-z - 0.5 * rng.normal(size=(n, 1, 1))))
    return cal.Predictions.binary(1 / (1 + np.exp(-z)), y.astype(int))


def test_whiskers_hold_the_truth_where_pixels_share_their_image():
    many = images(3000, seed=100)
    truth = {row["bin"]: row["accuracy"] for row in make("reliability").data({"m": many})}
    holds = {"clusters": [], "rows": []}
    for seed in range(40):
        p = images(24, seed)
        rows = cal.Predictions.binary(p.score, p.labels)
        for name, q in (("clusters", p), ("rows", rows)):
            holds[name] += [r["low"] <= truth[r["bin"]] <= r["high"] for r in make("reliability").data({"m": q})]
    assert np.mean(holds["rows"]) < 0.85  # as if pixels were independent
    assert 0.92 < np.mean(holds["clusters"]) < 0.98


@pytest.mark.parametrize("spec", ["reliability", "reliability:slider=true", "classwise_reliability"])
def test_few_clusters_have_no_whiskers_and_the_reason_is_told(spec):
    p, enough = images(4), images(12)
    figure = make(spec)
    rows = figure.data({"few": p})
    assert {(r["low"], r["high"], r["clusters"]) for r in rows if "low" in r} == {(None, None, 4)}
    reason = "few has no whiskers: too few clusters for an interval: 4, at least 10 are needed"
    assert cal.measure(p, "accuracy").reason in reason
    assert reason in figure.words(rows)
    assert "whiskers are" not in figure.words(rows)
    assert "isValid(datum.low)" in json.dumps(figure.chart(rows).to_dict())
    both = figure.data({"few": p, "enough": enough})
    assert all(r["low"] < r["high"] for r in both if r["model"] == "enough" and "low" in r)
    assert reason in figure.words(both)
    assert "whiskers are Wilson 95 % intervals, in which rows of one cluster share" in figure.words(both)


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_the_slider_begins_with_the_whiskers_of_the_figure(scheme):
    p = images(12)
    figure = make(f"reliability:slider=true,bins=10,scheme={scheme}")
    rows = figure.data({"m": p})
    cells = rows[-1]
    if scheme == "width":
        place = np.ceil(np.array(cells["at"]) * 10).astype(int)
    else:
        place = 1 + np.array(cells["start"]) * 10 // p.n
    worth = np.bincount(place, cells["worth"], 11)[1:]
    count = np.bincount(place, cells["count"], 11)[1:]
    assert (worth < 0.7 * count).any()
    for row in rows[:-1]:
        n, rate, z = worth[row["bin"] - 1], row["accuracy"], 1.959964
        half = z * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        assert row["high"] - row["low"] == pytest.approx(2 * half, rel=1e-3)


def test_rows_in_clusters_are_worth_no_more_than_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    alone = cal.Predictions.binary(rng.random(400), y, clusters=np.arange(400))
    assert effective_rows(alone) == 400
    same = cal.Predictions.binary(rng.random(400), np.repeat(y[:40], 10), clusters=np.repeat(np.arange(40), 10))
    assert effective_rows(same) == pytest.approx(40 * (1.96 / 2.0227) ** 2, rel=0.02)
    right = cal.Predictions.from_confidence(rng.random(400), np.ones(400), clusters=np.repeat(np.arange(40), 10))
    assert effective_rows(right) == 40
