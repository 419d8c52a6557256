"""The report of shifted data says whether the base rate alone explains the scores."""

import numpy as np
import pytest

from calibrant import Predictions
from calibrant.reporting.base_rate import base_rate_notes
from calibrant.reporting.build import build


def draw(n, rate, seed, moved=0.0, **more):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    x = rng.normal(size=n) + (1.5 + moved) * y
    return Predictions.binary(1 / (1 + np.exp(-x + 1)), y.astype(int), **more)


def test_a_change_of_the_base_rate_is_named_and_tested():
    val = draw(2000, 0.1, 0)
    (alone,) = base_rate_notes(draw(2000, 0.3, 1), val)
    assert "The base rate alone explains how the scores differ" in alone
    assert f"{100 * val.labels.mean():.1f} % of the fitting set" in alone
    (more,) = base_rate_notes(draw(2000, 0.3, 2, moved=-1.0), val)
    assert "more has changed" in more


def test_nothing_is_said_without_a_change_or_where_it_cannot_be_tested():
    val = draw(2000, 0.1, 0)
    assert base_rate_notes(draw(2000, 0.1, 3), val) == ()
    assert base_rate_notes(draw(2000, 0.3, 3), None) == ()
    assert base_rate_notes(draw(2000, 0.3, 3, clusters=np.arange(2000) // 2), val) == ()


def test_the_report_has_the_sentence_and_the_decision_curve():
    r = build(draw(600, 0.4, 1), fit_on=draw(600, 0.1, 0), cost="fn=9,fp=1", calibrators=["platt"], resamples=40)
    (m,) = r.models
    assert any(note.startswith("Other base rates: ") for note in m.notes)
    assert r.figures[0].figure == "decision_curve"
    assert "Best in hindsight is a threshold of" in m.cost.words


@pytest.mark.parametrize("cost", [None, "wrong=5,abstain=1"])
def test_other_costs_need_no_decision_curve(cost):
    r = build(draw(300, 0.4, 1), cost=cost, calibrators=["platt"], resamples=40)
    assert all(figure.figure != "decision_curve" for figure in r.figures)
