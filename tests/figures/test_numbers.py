"""Figures show the measures' own numbers."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.curves.keys import NEAR_ONE
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.shares import wilson
from calibrant.figures import make
from calibrant.figures._thin import thin


def sums(rows, key="class"):
    """Share times absolute gap, summed over the bins of each class."""
    total = {}
    for row in rows:
        total[row.get(key)] = total.get(row.get(key), 0.0) + row["share"] * abs(row["gap"])
    return total


# -- reliability ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["bins=15", "bins=1", "bins=7,scheme=mass", "bins=500", "bins=100,scheme=mass"])
def test_the_gaps_of_a_reliability_diagram_sum_to_the_ece(options, any_data):
    rows = make(f"reliability:{options}").data({"m": any_data})
    assert sums(rows)[None] == pytest.approx(cal.measures.make(f"ece:{options}")(any_data), abs=1e-12)
    assert max(abs(row["gap"]) for row in rows) == pytest.approx(
        cal.measures.make(f"mce:{options}")(any_data), abs=1e-12
    )
    assert sum(row["count"] for row in rows) == any_data.n
    assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_rows_of_a_reliability_diagram(p):
    for row in make("reliability:bins=10").data({"m": p}):
        inside = (p.confidence > row["low_edge"]) & (p.confidence <= row["high_edge"])
        assert row["count"] == inside.sum()
        assert row["confidence"] == pytest.approx(p.confidence[inside].mean())
        assert row["accuracy"] == pytest.approx(p.correct[inside].mean())
        assert row["low"] <= row["accuracy"] <= row["high"]
        assert row["side"] == ("overconfident" if row["gap"] > 0 else "underconfident")


def test_edges_of_equal_mass_bins_are_the_first_and_last_score(p):
    rows = make("reliability:bins=6,scheme=mass").data({"m": p})
    scores = np.sort(p.confidence)
    assert [row["count"] for row in rows] == [20] * 6
    assert [row["low_edge"] for row in rows] == scores[::20].tolist()
    assert [row["high_edge"] for row in rows] == scores[19::20].tolist()


@pytest.mark.parametrize(("hits", "n"), [(0, 1), (1, 1), (3, 10), (997, 1000), (0, 50)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_wilson_is_scipys(hits, n, level):
    from scipy.stats import binomtest

    theirs = binomtest(hits, n).proportion_ci(level, method="wilson")
    low, high = wilson(np.array([hits / n]), np.array([float(n)]), level)
    assert (low[0], high[0]) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_words_of_a_reliability_diagram(p):
    figure = make("reliability:bins=10")
    words = figure.words(figure.data({"CE": p}))
    assert f"ECE {cal.measures.make('ece:bins=10')(p):.4f}" in words
    assert f"says {100 * p.confidence.mean():.1f} %" in words
    assert f"right {100 * p.correct.mean():.1f} %" in words
    assert "Wilson 95 %" in words


# -- smooth reliability ---------------------------------------------------------------------------


def test_smooth_reliability_has_the_smooth_measure(any_data):
    rows = make("smooth_reliability:resamples=20").data({"m": any_data})
    assert rows[0]["smooth"] == pytest.approx(cal.measures.make("smooth")(any_data), abs=1e-9)
    for row in rows:
        assert 0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1


def test_the_mean_gap_of_the_smooth_curve_is_the_measure():
    rng = np.random.default_rng(0)
    logits = 4 * rng.normal(size=(20_000, 3))
    p = Predictions.from_logits(logits, (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1))
    rows = make("smooth_reliability:resamples=20").data({"m": p})
    gap = np.array([row["confidence"] - row["accuracy"] for row in rows])
    mean = np.average(np.abs(gap), weights=[row["density"] for row in rows])
    assert mean == pytest.approx(cal.measures.make("smooth")(p), rel=0.01)
    confidence = [row["confidence"] for row in rows]
    assert confidence == sorted(confidence)


def test_the_band_narrows_with_more_rows():
    def width(n):
        rng = np.random.default_rng(1)
        logits = 3 * rng.normal(size=(n, 3))
        p = Predictions.from_logits(1.5 * logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1))
        rows = make("smooth_reliability").data({"m": p})
        return np.average([row["high"] - row["low"] for row in rows], weights=[row["density"] for row in rows])

    assert width(16_000) < 0.7 * width(1000)


def test_the_band_is_the_spread_of_real_resamples(p):
    """A multinomial over cells is the row bootstrap: the quantiles of rows drawn one by one are nearly the same."""
    from calibrant.core.curves.kernels import smooth_error
    from calibrant.figures._kernel import smooth

    rows = make("smooth_reliability:resamples=400,seed=1").data({"m": p})
    curve = p.top_label
    sigma = smooth_error(curve.scores, (curve.scores - curve.outcomes) / curve.n)[1]
    rng, gaps = np.random.default_rng(2), []
    for _ in range(400):
        again = curve.repeat(np.bincount(rng.integers(curve.n, size=curve.n), minlength=curve.n))
        ones = np.ones(curve.n)
        density, residual = smooth(again.scores, [ones, again.scores - again.outcomes], sigma)
        gaps.append((residual / np.maximum(density, 1e-9))[-len(rows) :])
    middle = len(rows) // 2
    width = np.subtract(*np.quantile([gap[middle] for gap in gaps], [0.975, 0.025]))
    assert rows[middle]["high"] - rows[middle]["low"] == pytest.approx(width, rel=0.25)


# -- densities, sweeps, ranking -------------------------------------------------------------------


def test_densities_have_area_one(p):
    rows = make("confidence_density").data({"m": p})
    for outcome, mask in (("correct", p.correct), ("incorrect", ~p.correct)):
        own = [row for row in rows if row["outcome"] == outcome]
        assert np.mean([row["density"] for row in own]) == pytest.approx(1, abs=1e-6)
        assert own[0]["count"] == mask.sum()
        assert own[0]["mean"] == pytest.approx(p.confidence[mask].mean())


def test_a_model_without_errors_has_one_density(make_data):
    figure = make("confidence_density")
    rows = figure.data({"m": make_data("all correct")})
    assert {row["outcome"] for row in rows} == {"correct"}
    assert "no incorrect ones" in figure.words(rows)


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_bins_sweep_has_the_measures(scheme, p):
    for row in make(f"bins_sweep:scheme={scheme}").data({"m": p}):
        measure = cal.measures.make(f"{row['measure'].lower()}:bins={row['bins']},scheme={scheme}")
        assert row["value"] == pytest.approx(measure(p), abs=1e-12)
        assert 0 <= row["noise"] <= 1


def test_the_noise_of_the_sweep_is_that_of_a_calibrated_model(p):
    rows = make("bins_sweep:draws=300").data({"m": p})
    noise = next(row["noise"] for row in rows if (row["measure"], row["bins"]) == ("ECE", 10))
    assert noise == pytest.approx(cal.calibration_test(p, "ece:bins=10", resamples=300).expected, rel=0.05)


def test_risk_coverage_has_the_measures(any_data):
    rows = make("risk_coverage").data({"m": any_data})
    assert rows[0]["aurc"] == pytest.approx(cal.measures.make("aurc")(any_data), abs=1e-12)
    assert rows[-1]["coverage"] == 1
    assert rows[-1]["risk"] == pytest.approx(cal.measures.make("error")(any_data))
    for row in rows:
        kept = any_data.confidence >= row["threshold"] - 1e-15
        if row["threshold"] > NEAR_ONE and any_data.score_type == "logits":  # rows of one score, told apart by logits
            assert row["coverage"] <= kept.mean() + 1e-12
        else:
            assert row["coverage"] == pytest.approx(kept.mean())
            assert row["risk"] == pytest.approx(1 - any_data.correct[kept].mean())
        assert row["best"] <= row["risk"] + 1e-12


def test_correctness_roc_has_the_auroc(any_data):
    figure = make("correctness_roc")
    rows = figure.data({"m": any_data})
    auroc = cal.measures.make("auroc_correct")(any_data)
    if np.isnan(auroc):
        assert rows[0]["auroc"] is None
        assert "Undefined for m" in figure.words(rows)
        return
    assert rows[0]["auroc"] == pytest.approx(auroc, abs=1e-12)
    ends = [(row["incorrect"], row["correct"]) for row in (rows[0], rows[-1])]
    assert ends == [(0, 0), (1, 1)]


def test_thinned_curves_keep_their_area():
    rng = np.random.default_rng(2)
    logits = 2 * rng.normal(size=(30_000, 4))
    p = Predictions.from_logits(logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1))
    roc = make("correctness_roc").data({"m": p})
    area = np.trapezoid([row["correct"] for row in roc], [row["incorrect"] for row in roc])
    assert area == pytest.approx(cal.measures.make("auroc_correct")(p), abs=1e-4)
    risk = make("risk_coverage").data({"m": p})
    area = np.trapezoid([row["risk"] for row in risk], [row["coverage"] for row in risk])
    assert area == pytest.approx(cal.measures.make("aurc")(p), abs=1e-3)


def test_thin_keeps_both_ends_and_few_points():
    place = np.sort(np.random.default_rng(0).random(5000) ** 8)
    kept = thin(place)
    assert kept[0] == 0
    assert kept[-1] == 4999
    assert len(kept) <= 401
    assert (np.diff(kept) > 0).all()
    assert thin(place[:10]).tolist() == list(range(10))


# -- classes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["classwise_reliability", "worst_classes"])
@pytest.mark.parametrize("data", ["ten classes", "ties on edges", "absent class"])
def test_gaps_of_a_class_sum_to_its_error(name, data, make_data):
    p = make_data(data)
    rows = make(f"{name}:classes={p.k},bins=8").data({"m": p})
    per_class = cal.measures.make("classwise:bins=8").per_class(p)
    gaps = sums(rows)
    assert sorted(gaps) == list(range(p.k))
    for c, total in gaps.items():
        assert total == pytest.approx(per_class[c], abs=1e-12)
    assert np.mean(list(gaps.values())) == pytest.approx(cal.measures.make("classwise:bins=8")(p), abs=1e-12)
    errors = [row["error"] for row in rows]
    assert errors == sorted(errors, reverse=True)


def test_equal_mass_bins_of_classes_too(tied):
    rows = make("classwise_reliability:classes=4,bins=5,scheme=mass").data({"m": tied})
    per_class = cal.measures.make("classwise:bins=5,scheme=mass").per_class(tied)
    assert sums(rows) == pytest.approx(dict(enumerate(per_class)), abs=1e-12)


@pytest.mark.parametrize("name", ["classwise_reliability", "worst_classes"])
def test_models_with_other_classes_are_refused(name, make_data):
    with pytest.raises(InputError, match="same number of classes"):
        make(name).data({"a": make_data("two classes"), "b": make_data("three classes")})


@pytest.mark.parametrize("name", ["classwise_reliability", "worst_classes"])
def test_too_many_classes_are_refused(name):
    with pytest.raises(InputError, match="at most"):
        make(f"{name}:classes=1000")


# -- the slider -----------------------------------------------------------------------------------


def bins_of_cells(row, count, scheme):
    """What the page computes, in Python: bin of each cell, then the ECE."""
    at, size, hits = (np.array(row[key], dtype=float) for key in ("at", "count", "positives"))
    if scheme == "width":
        place = np.searchsorted(np.arange(1, count) / count, at, side="left")
    else:
        ends = np.cumsum([row["n"] // count + (i < row["n"] % count) for i in range(count)])
        place = np.searchsorted(ends, row["start"], side="right")
    residual = np.bincount(place, size * at - hits, minlength=count)
    return np.abs(residual).sum() / row["n"]


@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize("data", ["ties on edges", "ties of two classes", "overconfident", "saturated"])
def test_cells_give_the_ece_at_every_count(scheme, data, make_data):
    p = make_data(data)
    row = make(f"reliability:slider=true,scheme={scheme}").data({"m": p})[-1]
    assert (row["part"], row["most"], sum(row["count"])) == ("cells", 500, p.n)
    for count in range(5, 501):
        ece = cal.measures.make(f"ece:bins={count},scheme={scheme}")(p)
        assert bins_of_cells(row, count, scheme) == pytest.approx(ece, abs=1e-12), count


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_with_many_rows_the_slider_is_shorter_and_still_exact(scheme):
    rng = np.random.default_rng(5)
    top = 0.5 + 0.5 * rng.random(60_000)
    p = Predictions.from_probs(np.stack([top, 1 - top], axis=1), (rng.random(60_000) > top).astype(int))
    row = make(f"reliability:slider=true,scheme={scheme}").data({"m": p})[-1]
    assert 190 < row["most"] < 500
    assert len(row["at"]) <= 20_000
    assert len(json.dumps(row)) < 800_000
    for count in (5, 6, 15, 97, 100, row["most"] - 1, row["most"]):
        ece = cal.measures.make(f"ece:bins={count},scheme={scheme}")(p)
        assert bins_of_cells(row, count, scheme) == pytest.approx(ece, abs=1e-12)
