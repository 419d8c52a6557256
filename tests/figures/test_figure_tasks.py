"""Figures of every task of predictions, with weights: what the axes say, and what is refused."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.figures import PredictionFigure, find, make, names
from calibrant.plotting.draw import compute, spec

OF_EVENTS = ("reliability", "smooth_reliability", "confidence_density", "bins_sweep")
OF_POSITIVES = ("roc", "precision_recall")
OF_CLASSES = ("classwise_reliability", "worst_classes")


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    s = np.round(rng.beta(1, 5, n), 2)
    return s, (rng.random(n) < s).astype(int), rng.integers(0, 4, n)


def tasks():
    s, y, _ = rows()
    logits = np.random.default_rng(1).normal(size=(400, 4))
    logits[::3, 3] = -np.inf
    return {
        "binary": cal.Predictions.binary(s, y),
        "confidence": cal.Predictions.from_confidence(s, y),
        "choice": cal.Predictions.from_logits(logits, np.zeros(400, dtype=int)),
    }


@pytest.mark.parametrize("task", ["binary", "confidence", "choice"])
@pytest.mark.parametrize("name", [n for n in names() if issubclass(find(n), PredictionFigure)])
def test_every_figure_is_drawn_or_refused_in_one_sentence(name, task):
    p = tasks()[task]
    if (name in OF_POSITIVES and task != "binary") or (name in OF_CLASSES and task != "binary"):
        with pytest.raises(InputError, match="expected scores of"):
            compute(name, p)
        return
    chart = json.dumps(spec(name, compute(name, p)))
    if name in OF_EVENTS[:3]:
        assert ("P(positive)" in chart) == (task == "binary")
        assert ("share of positives" in chart or "of positive and negative rows" in chart) == (task == "binary")


def test_binary_diagrams_show_the_positive_class():
    s, y, _ = rows()
    p = cal.Predictions.binary(s, y)
    for row in make("reliability:bins=10").data({"m": p}):
        inside = (s > row["low_edge"]) & (s <= row["high_edge"]) | ((s == 0) & (row["bin"] == 1))
        assert row["count"] == inside.sum()
        assert row["accuracy"] == pytest.approx(y[inside].mean())
    words = make("reliability").words(make("reliability").data({"m": p}))
    assert words.startswith("Share of positives against P(positive) in 15 equal-width bins")
    assert "rows are positive" in words


@pytest.mark.parametrize("name", [*OF_EVENTS, *OF_POSITIVES, *OF_CLASSES, "risk_coverage", "correctness_roc"])
def test_whole_weights_are_repeated_rows(name):
    s, y, w = rows()
    options = ":resamples=20" if name == "smooth_reliability" else ":draws=300" if name == "bins_sweep" else ""
    kept, keys = {}, ("confidence", "accuracy", "count", "found", "precision", "risk", "density", "value", "correct")
    for kind, p in (
        ("weighted", cal.Predictions.binary(s, y, weights=w)),
        ("repeated", cal.Predictions.binary(np.repeat(s, w), np.repeat(y, w))),
    ):
        entry = make(name + options).data({"m": p})
        kept[kind] = [[row[key] for key in keys if key in row] for row in entry]
    if name == "confidence_density":  # its bandwidth follows the rows there are
        return
    assert np.array(kept["weighted"]) == pytest.approx(np.array(kept["repeated"]), abs=1e-9)


def test_shares_of_weight_are_drawn_too(tmp_path):
    s, y, _ = rows()
    p = cal.Predictions.binary(s, y, weights=np.random.default_rng(3).random(len(s)) + 0.05)
    for figure in ("reliability", "reliability:scheme=mass,bins=5"):
        entry = make(figure).data({"m": p})
        assert sum(row["share"] * abs(row["gap"]) for row in entry) == pytest.approx(
            cal.measures.make(figure.replace("reliability", "ece"))(p)
        )
    cal.plot("reliability", p).save(tmp_path / "page.html")
    with pytest.raises(InputError, match="rows without weights"):
        cal.plot("reliability:scheme=mass", p).save(tmp_path / "mass.html")


def test_the_areas_are_the_measures():
    p = tasks()["binary"]
    assert make("roc").data({"m": p})[0]["roc_auc"] == cal.measures.make("roc_auc")(p)
    entry = make("precision_recall").data({"m": p})
    assert entry[0]["average_precision"] == cal.measures.make("average_precision")(p)
    one_kind = cal.Predictions.binary([0.2, 0.4], [0, 0])
    for name in OF_POSITIVES:
        assert "Undefined for m" in make(name).words(make(name).data({"m": one_kind}))


def test_models_of_two_shapes_are_refused():
    by_task = tasks()
    with pytest.raises(InputError, match="draw them one by one"):
        compute("reliability", {"a": by_task["binary"], "b": by_task["confidence"]})


@pytest.mark.parametrize("name", ["reliability", "confidence_density"])
def test_panels_have_equal_axes(name):
    s, y, _ = rows()
    p = cal.Predictions.from_confidence(s, y)
    chart = json.dumps(spec(name, compute(name, {"sharp": p.with_temperature(0.3), "flat": p.with_temperature(3.0)})))
    entry = make(name).data({"sharp": p.with_temperature(0.3), "flat": p.with_temperature(3.0)})
    most = max(row["share" if name == "reliability" else "density"] for row in entry)
    assert chart.count(f'"domain": [0, {most}]') == 2
