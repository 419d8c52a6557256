"""A report never contradicts itself: over many data sets, of one model and of two, its sentences agree."""

import re

import numpy as np
import pytest

from calibrant import calibrators
from calibrant.core.predictions import Predictions
from calibrant.reporting import contents_by_task, pictures
from calibrant.reporting.build import build
from calibrant.reporting.markdown import markdown
from calibrant.reporting.sentences import choice

KINDS = {"calibrated": 1.0, "over": 2.2, "slightly over": 1.15, "under": 0.5}
SIZES = ((60, 2), (150, 3), (400, 10), (1000, 2), (2000, 3), (5000, 4))
CASES = [
    (kind, n, k, models, seed)
    for seed, (n, k) in enumerate(SIZES)
    for kind in KINDS
    for models in ((1, 2) if n <= 2000 else (1,))
]


def draw_predictions(kind, n, k, seed, *, noise=0.0, sharpness=1.0):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    labels = (z + rng.gumbel(size=(n, k))).argmax(axis=1)
    return Predictions.from_logits(KINDS[kind] * sharpness * (z + noise * rng.normal(size=z.shape)), labels)


def build_models(kind, n, k, models, seed):
    """Half the cases are cross-fitted, half fitted on other rows, which may be of another kind."""
    one = draw_predictions(kind, n, k, seed)
    calibrators = ["temperature", "isotonic", "svs"]
    if models == 1:
        fit_on = draw_predictions("under" if seed % 4 == 1 else kind, n, k, seed + 100) if seed % 2 else None
        return build(one, fit_on=fit_on, calibrators=calibrators, resamples=60, keep_argmax=seed % 3 == 0)
    two = draw_predictions(kind, n, k, seed, noise=0.4, sharpness=0.6)  # worse refined, perhaps better calibrated
    return build({"A": one, "B": two}, calibrators=calibrators, resamples=60)


def test_there_are_enough_cases():
    assert len(CASES) >= 40


@pytest.mark.parametrize(("kind", "n", "k", "models", "seed"), CASES)
def test_sentences_agree(kind, n, k, models, seed, monkeypatch):
    monkeypatch.setattr(contents_by_task, "FIGURES", ())  # the figures below the text say nothing of repairs
    monkeypatch.setattr(pictures, "DECOMPOSED_ELEMENTS", 0)
    r = build_models(kind, n, k, models, seed)
    for m in r.models:
        _one_model(m)
    if r.ranking is not None:
        _ranking(r)
    for text in (markdown(r), str(r)):
        assert not re.search(r"\d%|p = 0\.0+\b|\bnan\b", text)
        for before, after in re.findall(r"(\d+\.\d+)(?: %)? to (\d+\.\d+)(?: %)?, (?:worse|better)", text):
            assert before != after


def _one_model(m):
    worse = {t.calibrator for t in m.trials if t.outcome == "worse"}
    helped = {t.calibrator for t in m.trials if t.outcome == "better"}
    text, chosen = m.verdict.text, m.ruling.chosen
    stopped = m.verdict.finding.repair == "stopped"
    assert m.best == ("identity" if stopped or chosen in worse else chosen)
    assert all(m.ruling.of(name).may_win for name in {chosen, m.ruling.otherwise} - {"identity"})
    for t in m.trials[1:]:
        nll = next(change for change in t.changes if change.measure == "nll")
        assert (t.calibrator in helped) == (nll.better == "b")
        assert (t.calibrator in worse) == (nll.better == "a")
        if m.judged_on == "cross_fitted":  # then the rule decides by these very numbers
            outcome = {"better": "better", "worse": "worse"}.get(t.outcome, "neither")
            assert m.ruling.of(t.calibrator).significant == outcome
        for change in t.changes:
            if change.better != "neither":
                assert not change.low <= 0 <= change.high
    assert all(f"Use {name}" not in m.verdict.action + choice(m) for name in worse)
    assert (f"Use {m.best}" in choice(m)) == (m.best != "identity")
    if stopped:  # rows are too few: nothing is said of calibrators
        assert "loss" not in text
        return
    raised = re.search(r"The loss is raised by ([^.]*)\.", text)
    assert bool(raised) == bool(worse - {chosen})
    assert ("lowers the loss (NLL" in text) == (m.best in helped)
    assert ("has no significant effect on the loss" in text) == (m.best not in helped | {"identity"})
    assert ("but raises the loss of these rows" in text) == (chosen in worse)
    assert ("no calibrator has a significantly lower loss" in m.ruling.words) == (chosen == "identity")
    if raised and m.best != "identity":
        assert calibrators.make(m.best).name_in_text not in raised[1]


def _ranking(r):
    after = {m.name: m.after(m.best).values["nll"] for m in r.models}
    before = {m.name: m.after("identity").values["nll"] for m in r.models}
    assert [m.name for m in r.models] == list(r.ranking.order) == sorted(after, key=after.__getitem__)
    first, second = r.models
    words = r.ranking.words
    assert words.startswith(f"With the calibration recommended for each, {first.name} has the lowest loss (NLL")
    assert (f"Uncalibrated, {second.name} is ahead" in words) == (before[second.name] < before[first.name])
    top = r.ranking.pairs[0].changes[0]
    assert "every other" not in words
    assert ("is inconclusive" in words) == (top.better == "neither")
    assert top.better != "b"
    assert (top.a, top.b) == pytest.approx((after[first.name], after[second.name]))
