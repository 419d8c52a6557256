"""CORP: parts that add up exactly, and a band that calibrated scores stay in."""

import numpy as np
import pytest
from clinical_rows import OUTCOMES, SCORES, clinical_rows

import calibrant as cal
from calibrant.core.curves.curve import Curve
from calibrant.core.statistics.corp import consistency_band, corp_terms
from calibrant.figures import make


def slow_isotonic(outcomes):
    """Pool adjacent violators, one by one."""
    blocks = []
    for y in outcomes:
        blocks.append([float(y), 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (a, m), (b, n) = blocks[-2:]
            blocks[-2:] = [[(a * m + b * n) / (m + n), m + n]]
    return np.concatenate([[value] * n for value, n in blocks])


@pytest.mark.parametrize("kind", ["brier", "log"])
def test_parts_add_up_and_are_those_of_the_definition(kind):
    def score(forecast):
        if kind == "brier":
            return np.mean((forecast - OUTCOMES) ** 2)
        return -np.mean(np.log(np.where(OUTCOMES == 1, forecast, 1 - forecast)))

    terms = corp_terms(clinical_rows().curve, kind)
    fitted = slow_isotonic(OUTCOMES)
    assert terms.score == pytest.approx(terms.miscalibration - terms.discrimination + terms.uncertainty, abs=1e-15)
    assert terms.miscalibration == pytest.approx(score(SCORES) - score(fitted), abs=1e-12)
    assert terms.discrimination == pytest.approx(score(np.full(200, 0.415)) - score(fitted), abs=1e-12)
    assert terms.miscalibration >= 0
    assert terms.discrimination >= 0


def test_weights_that_count_rows_are_repeated_rows():
    counts = np.random.default_rng(0).integers(1, 4, 200)
    weighted = corp_terms(clinical_rows(weights=counts).curve)
    repeated = corp_terms(cal.Predictions.binary(SCORES.repeat(counts), OUTCOMES.repeat(counts)).curve)
    assert weighted.miscalibration == pytest.approx(repeated.miscalibration, abs=1e-12)


def test_a_calibrated_curve_stays_in_its_band():
    """A 90 % band at each place, over 40 sets: about 90 % of places, and wide bands where rows are few."""
    inside = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        scores = rng.random(300)
        curve = Curve.sort(scores, (rng.random(300) < scores).astype(float))
        rows = make("corp:resamples=100").data({"m": cal.Predictions.binary(curve.scores, curve.outcomes)})
        inside.append(np.mean([row["low"] <= row["accuracy"] <= row["high"] for row in rows]))
    assert 0.85 <= np.mean(inside) <= 0.97


def test_the_band_of_clusters_is_wider():
    copies = np.repeat(np.arange(200), 5)
    curve = Curve.sort(SCORES[copies], OUTCOMES[copies].astype(float))
    at, options = np.linspace(0.2, 0.8, 7), {"level": 0.9, "resamples": 60, "seed": 0}
    low, high = consistency_band(curve, at, **options)
    wide_low, wide_high = consistency_band(curve, at, clusters=copies[curve.order], **options)
    assert (wide_high - wide_low).mean() > 1.5 * (high - low).mean()


def test_log_odds_axes_are_labelled_by_shares():
    import altair as alt

    rng = np.random.default_rng(0)
    scores = rng.beta(0.5, 40, 400)
    p = cal.Predictions.binary(scores, rng.random(400) < scores)
    for name in ("corp:scale=logit", "reliability:scale=logit,scheme=mass,bins=5"):
        figure = make(name)
        chart = figure.chart(figure.data({"rare": p}))
        assert isinstance(chart, alt.TopLevelMixin)
        text = chart.to_json()
        assert "confidence_logit" in text
        assert "exp(-datum.value)" in text
