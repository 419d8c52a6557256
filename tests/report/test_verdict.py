"""The verdict says what the rows show and no more: every case, from data and from hand-made numbers."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant.core.predictions import Predictions
from calibrant.measures._compare import Comparison
from calibrant.report import verdict
from calibrant.report.build import build
from calibrant.report.values import Bin, Noise, Tried

BINS = (Bin(0.0, 0.5, 0, 0.0, 0.0), Bin(0.5, 0.9, 100, 0.7, 0.75), Bin(0.9, 1.0, 300, 0.98, 0.9))


def drawn(n, sharpness, seed=0, k=3):
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, k))
    return Predictions.from_logits(sharpness * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))


@pytest.mark.parametrize(
    ("state", "n", "gap", "noise"),
    [
        ("over", 1000, 0.04, Noise(0.05, 0.01, 0.02, 0.001, 0.001)),
        ("under", 1000, -0.04, Noise(0.05, 0.01, 0.02, 0.001, 0.001)),
        ("mixed", 1000, 0.001, Noise(0.05, 0.01, 0.02, 0.001, 0.8)),
        ("close", 10**6, 0.004, Noise(0.005, 0.001, 0.002, 0.001, 0.001)),
        ("honest", 1000, 0.004, Noise(0.01, 0.01, 0.02, 0.5, 0.4)),
        ("unsure", 100, 0.04, Noise(0.09, 0.08, 0.12, 0.4, 0.2)),
        ("unsure", 3, 0.0, Noise(0.0, 0.0, 0.0, 1.0, 1.0)),
        ("leaning over", 400, 0.04, Noise(0.05, 0.04, 0.06, 0.2, 0.03)),
        ("leaning under", 400, -0.04, Noise(0.05, 0.04, 0.06, 0.2, 0.03)),
    ],
)
def test_state(state, n, gap, noise):
    assert verdict.state_of(n, gap, noise) == state


# -- from data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sharpness", "n", "words"),
    [
        (1.0, 2000, "its confidence can be taken at its word"),
        (3.0, 1000, "overconfident by"),
        (0.3, 1000, "underconfident by"),
        (1.0, 60, "60 rows are too few to tell"),
    ],
)
def test_headline_of_data(sharpness, n, words):
    r = build(drawn(n, sharpness), calibrators=["temperature"], resamples=60)
    assert words in r.models[0].verdict.headline
    assert r.models[0].verdict.headline.startswith("Says ")


def test_mixed_is_honest_on_average_only():
    """Too sure at 95 %, not sure enough at 55 %, and equally many of both."""
    probs = np.repeat([[0.95, 0.05], [0.55, 0.45]], 1000, axis=0)
    right = np.concatenate([np.arange(1000) < 800, np.arange(1000) < 700])
    m = build(Predictions.from_probs(probs, 1 - right), calibrators=["temperature"], resamples=60).models[0]
    assert m.verdict.headline == "Says 75.0 %, is right 75.0 %: honest on average, not in detail."
    assert "where it says about 55 %, it is right 70 %" in m.verdict.text


def test_honest_is_left_alone_and_a_wrong_repair_is_called_worse():
    r = build(drawn(2000, 1.0), fit_on=drawn(2000, 4.0, seed=2), calibrators=["temperature"], resamples=100)
    m = r.models[0]
    assert m.best == "identity"
    assert m.tried[1].outcome == "made it worse"
    assert "Leave it alone" in m.verdict.text
    assert "Made worse by temperature." in m.verdict.text


def test_overconfident_is_repaired_by_a_temperature_that_changes_no_decision():
    m = build(drawn(2000, 3.0), fit_on=drawn(2000, 3.0, seed=2), calibrators=["temperature"], resamples=100).models[0]
    assert m.best == "temperature"
    assert "A temperature of 3" in m.verdict.text
    assert "fitted on other rows" in m.verdict.text
    assert "repairs nearly all of it" in m.verdict.text
    assert "changes no decision" in m.verdict.text


def test_without_other_rows_it_says_cross_fitted():
    m = build(drawn(1000, 3.0), calibrators=["temperature"], resamples=60).models[0]
    assert m.judged_on == "cross-fitted rows"
    assert "cross-fitted" in m.verdict.text


def test_the_same_rows_are_called_flattering():
    p = drawn(500, 3.0)
    m = build(p, fit_on=p, calibrators=["temperature"], resamples=60).models[0]
    assert m.judged_on == "the fitting rows"
    assert "flatter" in m.cautions[0]
    assert "which flatters it" in m.verdict.text


# -- from hand-made numbers -------------------------------------------------------------------------


def comparison(measure, a, b, better):
    return Comparison(measure, a, b, b - a, b - a, b - a, 0.01, better, 400, 3, "")


def tried(**changed):
    changes = {
        "nll": comparison("nll", 0.6, 0.5, "b"),
        "ece": comparison("ece", 0.06, 0.02, "b"),
        "accuracy": comparison("accuracy", 0.9, 0.9, "neither"),
        "auroc": comparison("auroc", 0.8, 0.8, "neither"),
    }
    t = Tried("isotonic", "helped", "", "", {}, True, 0, {}, tuple((changes | changed).values()))
    return replace(t, keeps_argmax=False, decisions_changed=12) if "accuracy" in changed else t


AS_IT_IS = Tried("identity", "as it is", "", "", {}, True, 0, {}, ())
NOISE = Noise(0.06, 0.01, 0.02, 0.001, 0.001)
AVERAGE = {"says": 0.91, "right": 0.86, "gap": 0.05}


def written(*rows, best="isotonic", state="over", bolder=None):
    return verdict.write(state, 400, AVERAGE, NOISE, BINS, (AS_IT_IS, *rows), best, "other rows", bolder)


def test_the_whole_paragraph():
    v = written(tried())
    assert v.headline == "Says 91.0 %, is right 86.0 %: overconfident by 5.0 points."
    assert v.text == (
        "Where it says about 98 %, it is right 90 % of the time (300 rows). Its calibration error (ECE) is 6.0 %, "
        "where chance alone stays below 2.0 %. Isotonic regression, fitted on other rows, repairs most of it (ECE "
        "6.0 % to 2.0 %) and changes no decision; refinement (AUROC) is unchanged."
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"auroc": comparison("auroc", 0.85, 0.8, "a")}, "refinement (AUROC) got worse, 0.850 to 0.800"),
        ({"auroc": comparison("auroc", 0.802, 0.8, "a")}, "refinement (AUROC) got slightly worse"),
        ({"auroc": comparison("auroc", 0.8, 0.85, "b")}, "refinement (AUROC) improves, 0.800 to 0.850"),
        ({"auroc": comparison("auroc", float("nan"), float("nan"), "neither")}, "undefined"),
        ({"auroc": comparison("auroc", 0.8, 0.82, "neither")}, "unchanged as far as these rows tell"),
        ({"ece": comparison("ece", 0.06, 0.08, "a")}, "improves the loss but not the calibration error"),
        ({"ece": comparison("ece", 0.06, 0.05, "neither")}, "with no shown effect on the calibration error"),
        ({"ece": comparison("ece", 0.06, 0.005, "b")}, "repairs nearly all of it (ECE 6.0 % to 0.50 %)"),
        ({"ece": comparison("ece", 0.06, 0.04, "b")}, "repairs part of it"),
        ({"ece": comparison("ece", 0.06, 0.055, "b")}, "repairs a little of it"),
        ({"accuracy": comparison("accuracy", 0.9, 0.92, "b")}, "changes 12 decisions, which improves accuracy 90.0 %"),
        ({"accuracy": comparison("accuracy", 0.9, 0.9, "neither")}, "12 decisions, with no shown effect on accuracy"),
    ],
)
def test_every_kind_of_repair_is_said(changed, words):
    assert words in written(tried(**changed)).text


def test_nothing_helps():
    text = written(tried(), best="identity").text
    assert "Nothing tried (isotonic) improves it beyond noise: leave it alone." in text


def test_bolder_and_harm_and_leaning():
    other = replace(tried(), calibrator="svs", keeps_argmax=False, decisions_changed=1, outcome="made it worse")
    text = written(tried(), other, bolder="svs").text
    assert "Structured vector scaling (svs) has a lower loss than isotonic" in text
    assert "changing 1 decision (" in text
    assert text.endswith("Made worse by structured vector scaling (svs).")
    assert "still improves the loss" in written(tried(), state="leaning over").text


def test_mixed_names_a_bin_of_each_side():
    text = written(tried(), state="mixed").text
    assert "Where it says about 98 %, it is right 90 %" in text
    assert "where it says about 70 %, it is right 75 %" in text
