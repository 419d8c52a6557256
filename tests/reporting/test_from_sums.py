"""A report from the state of an accumulator: what sums can answer, and that the rest is named."""

import json
import shutil

import numpy as np
import pytest
from commands import run

import calibrant as cal
from calibrant.data import DEMO_TEST
from calibrant.reporting import calibration_state, sentences, verdict
from calibrant.reporting.pdf import BROWSERS


def stream(n=3000, *, off=0.0, seed=0, make=cal.Predictions.from_confidence, **extras):
    rng = np.random.default_rng(seed)
    s = rng.beta(5, 1.5, n)
    return make(s, (rng.random(n) < s - off).astype(int), **extras)


def summed(p, *, by=None, measures=None):
    sums = cal.Accumulator(measures) if by is None else cal.Accumulators(by=by, measures=measures)
    sums.update(p)
    return sums


@pytest.mark.parametrize("off", [0.0, 0.1])
@pytest.mark.parametrize("make", [cal.Predictions.from_confidence, cal.Predictions.binary])
def test_the_headline_is_that_of_the_rows(off, make):
    p = stream(off=off, make=make)
    (r,), figures = cal.report(summed(p)).models, cal.report(summed(p)).figures
    whole = sentences.write(verdict.judge(calibration_state.assess(p)))
    said, said_of_rows = (v.headline.partition("(error below")[0] for v in (r.verdict, whole))
    assert (said, r.verdict.state, r.verdict.colour) == (said_of_rows, whole.state, whole.colour)
    exact = calibration_state.assess(p).noise
    assert r.noise.observed == pytest.approx(exact.observed)
    assert r.noise.upper == pytest.approx(exact.upper, rel=0.1)
    assert r.noise.gap_p_value == pytest.approx(exact.gap_p_value, abs=0.02)
    ece = next(n for n in r.numbers if n.measure == "ece")
    assert f"ECE {ece.value:.4f}" in figures[0].words  # the diagram has the same bins


def test_without_an_ece_and_with_clusters():
    assert cal.report(summed(stream(off=0.1), measures=["accuracy"])).models[0].verdict.state == "over"
    (r,) = cal.report(summed(stream(clusters=np.arange(3000) // 3))).models
    assert "clusters" in r.verdict.text
    assert r.noise is None
    with pytest.raises(cal.InputError, match="at least one batch"):
        cal.report(cal.Accumulator())


def test_every_format(tmp_path):
    sums = summed(stream(off=0.1, groups=["<a>", "b"] * 1500), by="segment")
    state = tmp_path / "sums.json"
    sums.save(state)
    out = run("report", state).stdout
    assert "overconfident by" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    for suffix in ("html", "md", "json"):
        file = tmp_path / f"r.{suffix}"
        run("report", state, "--out", file)
        text = file.read_text()
        assert "overconfident by" in text
        assert "calibrators are fitted on rows" in text
        assert "<a>" not in text or suffix == "json"
    document = json.loads((tmp_path / "r.json").read_text())
    rows = json.loads(run("report", DEMO_TEST, "--with", "temperature", "--override", "resamples=40", "--json").stdout)
    assert list(document) == list(rows)  # one layout for rows and for sums
    assert list(document["models"][0]) == list(rows["models"][0])
    (model,) = document["models"]
    assert (model["ruling"], model["certainty"], model["judged_on"], model["trials"]) == (None, None, None, [])
    assert {row["name"] for row in model["groups"]["rows"]} == {"<a>", "b"}
    page = (tmp_path / "r.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    assert "got --cost" in run("report", state, "--cost", "wrong=5,abstain=1", code=2).stderr
    assert "one state of sums" in run("report", state, state, code=2).stderr
    if any(map(shutil.which, BROWSERS)):
        run("report", state, "--out", tmp_path / "r.pdf")
        assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
