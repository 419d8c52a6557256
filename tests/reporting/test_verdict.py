"""The verdict says what the rows show and no more: every case, from data and from hand-made numbers."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant.core.predictions import Predictions
from calibrant.measuring.compare import Comparison
from calibrant.repairing.rule import Candidate, Ruling
from calibrant.reporting import sentences
from calibrant.reporting.build import build
from calibrant.reporting.calibration_state import assess, state_of
from calibrant.reporting.parts import Assessment, Bin, CalibratorTrial, Noise
from calibrant.reporting.verdict import judge
from calibrant.streaming.accumulator import Accumulator

BINS = (Bin(0.0, 0.5, 0, 0.0, 0.0), Bin(0.5, 0.9, 100, 0.7, 0.75), Bin(0.9, 1.0, 300, 0.98, 0.9))


def draw_predictions(n, sharpness, seed=0, k=3):
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
        ("calibrated", 1000, 0.004, Noise(0.01, 0.01, 0.02, 0.5, 0.4)),
        ("inconclusive", 100, 0.04, Noise(0.09, 0.08, 0.12, 0.4, 0.2)),
        ("inconclusive", 3, 0.0, Noise(0.0, 0.0, 0.0, 1.0, 1.0)),
        ("perhaps_over", 400, 0.04, Noise(0.05, 0.04, 0.06, 0.2, 0.03)),
        ("perhaps_under", 400, -0.04, Noise(0.05, 0.04, 0.06, 0.2, 0.03)),
    ],
)
def test_state_of_gap_and_noise(state, n, gap, noise):
    assert state_of(n, gap, noise) == state


# -- from data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sharpness", "n", "words"),
    [
        (1.0, 2000, "calibrated within what can be seen (error below"),
        (3.0, 1000, "overconfident by"),
        (0.3, 1000, "underconfident by"),
        (1.0, 60, "60 rows are too few to tell"),
    ],
)
def test_headline_of_data(sharpness, n, words):
    r = build(draw_predictions(n, sharpness), calibrators=["temperature"], resamples=60)
    assert words in r.models[0].verdict.headline
    assert r.models[0].verdict.headline.startswith("Says ")


def test_mixed_is_calibrated_on_average_only():
    """Too sure at 95 %, not sure enough at 55 %, and equally many of both."""
    probs = np.repeat([[0.95, 0.05], [0.55, 0.45]], 1000, axis=0)
    right = np.concatenate([np.arange(1000) < 800, np.arange(1000) < 700])
    m = build(Predictions.from_probs(probs, 1 - right), calibrators=["temperature"], resamples=60).models[0]
    assert (
        m.verdict.headline == "Says 75.0 %, is right 75.0 %: calibrated on average, not in detail, but its confidence "
        "barely tells right from wrong."
    )
    assert "where it says about 55 %, it is right 70 %" in m.verdict.text


def test_calibrated_needs_nothing_and_a_wrong_repair_is_called_worse():
    r = build(
        draw_predictions(2000, 1.0),
        fit_on=draw_predictions(2000, 4.0, seed=2),
        calibrators=["temperature"],
        resamples=100,
    )
    m = r.models[0]
    assert m.best == "identity"
    assert m.trials[1].outcome == "worse"
    assert m.verdict.action.startswith("Use it uncalibrated: temperature, chosen on the fitting set, makes these rows")
    assert "was the choice by the fitting set, but raises the loss of these rows" in m.verdict.text


def test_overconfident_is_repaired_by_a_temperature_that_changes_no_prediction():
    m = build(
        draw_predictions(2000, 3.0),
        fit_on=draw_predictions(2000, 3.0, seed=2),
        calibrators=["temperature"],
        resamples=100,
    ).models[0]
    assert m.best == "temperature"
    assert "A temperature of 3" in m.verdict.text
    assert "on held-out rows" in m.verdict.text
    assert "removes nearly all of the calibration error" in m.verdict.text
    assert "changes no prediction" in m.verdict.text


def test_without_other_rows_it_says_cross_fitted():
    m = build(draw_predictions(1000, 3.0), calibrators=["temperature"], resamples=60).models[0]
    assert m.judged_on == "cross_fitted"
    assert "cross-fitted" in m.verdict.text


def test_the_same_rows_are_called_optimistic():
    p = draw_predictions(500, 3.0)
    m = build(p, fit_on=p, calibrators=["temperature"], resamples=60).models[0]
    assert m.judged_on == "fitting_rows"
    assert "optimistic" in m.cautions[0]
    assert "which is optimistic" in m.verdict.text


# -- from hand-made numbers -------------------------------------------------------------------------


def comparison(measure, a, b, better):
    return Comparison(
        measure=measure,
        a=a,
        b=b,
        difference=b - a,
        low=b - a,
        high=b - a,
        p_value=0.01,
        better=better,
        n=400,
        k=3,
        definition="",
    )


def tried(**changed):
    changes = {
        "nll": comparison("nll", 0.6, 0.5, "b"),
        "ece": comparison("ece", 0.06, 0.02, "b"),
        "accuracy": comparison("accuracy", 0.9, 0.9, "neither"),
        "auroc_correct": comparison("auroc_correct", 0.8, 0.8, "neither"),
    }
    t = replace(UNCALIBRATED, calibrator="isotonic", outcome="better", changes=tuple((changes | changed).values()))
    return replace(t, keeps_argmax=False, predictions_changed=12) if "accuracy" in changed else t


UNCALIBRATED = CalibratorTrial(
    calibrator="identity",
    outcome="uncalibrated",
    words="",
    learned="",
    parameters={},
    keeps_argmax=True,
    predictions_changed=0,
    values={},
    changes=(),
)
FOUND = Assessment(
    state="over",
    n=400,
    says=0.91,
    right=0.86,
    noise=Noise(0.06, 0.01, 0.02, 0.001, 0.001),
    gap_low=0.02,
    gap_high=0.08,
    bins=BINS,
)


def written(*rows, best="isotonic", state="over", otherwise=None, keep_argmax=False):
    candidates = tuple(
        Candidate(
            calibrator=t.calibrator,
            nll=0.5,
            difference=-0.1,
            low=-0.2,
            high=-0.05,
            significant="better",
            keeps_argmax=t.keeps_argmax,
        )
        for t in (UNCALIBRATED, *rows)
    )
    ruling = Ruling(
        chosen=best, otherwise=otherwise or best, keep_argmax=keep_argmax, candidates=candidates, rival=None, n=400
    )
    trials = (UNCALIBRATED, *rows)
    found = judge(replace(FOUND, state=state), trials=trials, ruling=ruling, judged_on="held_out")
    return sentences.write(found, trials, ruling, "held_out")


def test_the_whole_paragraph():
    v = written(tried())
    assert v.headline == "Says 91.0 %, is right 86.0 %: overconfident by 5.0 points."
    assert v.text == (
        "Where it says about 98 %, it is right 90 % of the time (300 rows). Its calibration error (ECE) is 6.0 %, "
        "where chance alone stays below 2.0 %. Isotonic regression, on held-out rows, lowers the loss (NLL 0.600 "
        "to 0.500) and removes most of the calibration error (ECE 6.0 % to 2.0 %). It changes no prediction; "
        "refinement (AUROC) is unchanged."
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"auroc_correct": comparison("auroc_correct", 0.85, 0.8, "a")},
            "refinement (AUROC) gets worse, 0.850 to 0.800",
        ),
        ({"auroc_correct": comparison("auroc_correct", 0.802, 0.8, "a")}, "refinement (AUROC) gets slightly worse"),
        ({"auroc_correct": comparison("auroc_correct", 0.8621, 0.8618, "a")}, "slightly worse, 0.8621 to 0.8618"),
        ({"auroc_correct": comparison("auroc_correct", 0.8, 0.85, "b")}, "refinement (AUROC) improves, 0.800 to 0.850"),
        ({"auroc_correct": comparison("auroc_correct", float("nan"), float("nan"), "neither")}, "undefined"),
        (
            {"auroc_correct": comparison("auroc_correct", 0.8, 0.82, "neither")},
            "does not change significantly, 0.800 to 0.820",
        ),
        ({"ece": comparison("ece", 0.06, 0.08, "a")}, "and raises the calibration error (ECE 6.0 % to 8.0 %)"),
        ({"ece": comparison("ece", 0.06, 0.05, "neither")}, "has no significant effect on the calibration error"),
        ({"ece": comparison("ece", 0.06, 0.005, "b")}, "removes nearly all of the calibration error (ECE 6.00 % to"),
        ({"ece": comparison("ece", 0.06, 0.04, "b")}, "removes part of the calibration error"),
        ({"ece": comparison("ece", 0.06, 0.055, "b")}, "removes a little of the calibration error"),
        ({"accuracy": comparison("accuracy", 0.9, 0.92, "b")}, "12 predictions, which raises accuracy (90.0 % to 92.0"),
        (
            {"accuracy": comparison("accuracy", 0.9, 0.9, "neither")},
            "12 predictions, with no significant effect on",
        ),
        ({"nll": comparison("nll", 0.86212, 0.86209, "b")}, "lowers the loss (NLL 0.86212 to 0.86209)"),
    ],
)
def test_every_kind_of_repair_is_said(changed, words):
    assert words in written(tried(**changed)).text


def test_nothing_helps():
    verdict = written(tried(), best="identity")
    assert "None of the calibrators tried (isotonic) significantly lowers the loss on the fitting set." in verdict.text
    assert verdict.text.endswith("On these rows isotonic regression would have.")
    assert verdict.action == "Use it uncalibrated: no calibrator tried significantly helps on the fitting set."
    assert "No calibration needed: none of" in written(tried(), best="identity", state="calibrated").text


def test_the_other_option_and_harm():
    other = replace(tried(), calibrator="svs", keeps_argmax=False, predictions_changed=1)
    worse = replace(tried(), calibrator="matrix", keeps_argmax=False, outcome="worse")
    text = written(tried(), other, worse, otherwise="svs", keep_argmax=True).text
    assert "If predictions may change, use structured vector scaling (svs) (NLL 0.600 to 0.500); It" not in text
    assert "If predictions may change, use structured vector scaling (svs) (NLL 0.600 to 0.500)" in text
    assert "changes 1 prediction" in text
    assert text.endswith("The loss is raised by matrix scaling.")
    text = written(other, tried(), best="svs", otherwise="isotonic").text
    assert "To keep every prediction, use isotonic regression (NLL 0.600 to 0.500)." in text
    text = written(other, best="svs", otherwise="identity").text
    assert "Among calibrators that keep every prediction, none significantly lowers the loss." in text


def test_mixed_names_a_bin_of_each_side():
    text = written(tried(), state="mixed").text
    assert "Where it says about 98 %, it is right 90 %" in text
    assert "where it says about 70 %, it is right 75 %" in text


# -- scores of the wrong class, and the badge -------------------------------------------------------


def reversed_scores(n=400):
    rng = np.random.default_rng(0)
    s = rng.random(n)
    return Predictions.binary(1 - s, rng.random(n) < s)


@pytest.mark.parametrize("of_sums", [False, True])
def test_reversed_scores_are_said_first(of_sums):
    p = reversed_scores()
    source = p
    if of_sums:
        source = Accumulator()
        source.update(p)
    v = build(source, **({} if of_sums else {"calibrators": ["platt"], "resamples": 60})).models[0].verdict
    assert v.headline.startswith("Positives have lower scores than negatives (ROC AUC 0.1")
    assert "probably P(negative)" in v.headline
    told = v.text if of_sums else v.action
    assert told.startswith("If the scores are P(negative), give 1 - scores, or name the other label as positive.")


def test_scores_that_rank_right_or_are_random_are_not_called_reversed():
    rng = np.random.default_rng(0)
    noise = Predictions.binary(rng.random(300), rng.random(300) < 0.5)
    right = Predictions.binary(1 - reversed_scores().score, reversed_scores().labels)
    assert [assess(p).level for p in (noise, right)] == ["none", "clear"]


def test_the_badge_tells_no_more_than_the_verdict():
    calibrated = build(draw_predictions(2000, 1.0), calibrators=["temperature"], resamples=60).models[0]
    assert sentences.badge(calibrated) == "no calibration needed"
    over = build(draw_predictions(1000, 3.0), calibrators=["temperature"], resamples=60).models[0]
    assert sentences.badge(over) == "use this"
    settled = replace(calibrated, verdict=replace(calibrated.verdict, state="over"))  # and no calibrator helps
    assert sentences.badge(settled) == "no calibrator significantly helps"
    assert "No calibration: no calibrator has a significantly lower loss" in sentences.choice(settled)
    alike = build(Predictions.from_logits([[3.0, 0.0], [0.0, 2.0]] * 60, [0, 1] * 60), calibrators=["temperature"])
    assert sentences.badge(alike.models[0]) == "nothing to fit"
