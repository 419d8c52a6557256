"""R, statsmodels, probcal and scikit-learn on the rows of docs/methods/vectors.md#clinical-measures and on others."""

import shutil
import subprocess

import numpy as np
import pytest
from clinical_rows import OUTCOMES, SCORES

import calibrant as cal
from calibrant.core.curves.keys import floored_log_odds as log_odds
from calibrant.core.statistics.corp import corp_terms
from calibrant.core.statistics.cox import fit_cox
from calibrant.measures import make

pytestmark = pytest.mark.slow


def other_rows():
    rng = np.random.default_rng(3)
    scores = rng.beta(2, 5, 400)
    return scores, (rng.random(400) < scores**1.1).astype(int)


ROWS = pytest.mark.parametrize(("s", "y"), [(SCORES, OUTCOMES), other_rows()], ids=["vectors", "others"])


def in_r(code, s, y, folder):
    if not shutil.which("Rscript"):
        pytest.skip("R IS ABSENT: install r-base-core to compare with glm and loess")
    np.savetxt(folder / "rows.csv", np.stack([s, y], axis=1), delimiter=",", header="s,y", comments="", fmt="%.17g")
    script = f"d <- read.csv('{folder}/rows.csv'); options(digits = 15); {code}"
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


@ROWS
def test_glm_of_r(s, y, tmp_path):
    code = "m <- summary(glm(y ~ qlogis(s), binomial, d, control = list(epsilon = 1e-14)))$coefficients; cat(m[, 1:2])"
    intercept, slope, *errors = in_r(code, s, y, tmp_path)
    fit = fit_cox(log_odds(s), y.astype(float), np.ones(len(s)))
    assert (fit.intercept, fit.slope) == pytest.approx((intercept, slope), abs=1e-8)
    assert np.sqrt(np.diag(fit.bread)) == pytest.approx(errors, abs=1e-8)
    code = "cat(coef(glm(y ~ offset(qlogis(s)), binomial, d, control = list(epsilon = 1e-14))))"
    assert make("in_the_large")(cal.Predictions.binary(s, y)) == pytest.approx(in_r(code, s, y, tmp_path)[0], abs=1e-8)


@ROWS
def test_loess_of_r(s, y, tmp_path):
    code = (
        "c <- loess(y ~ s, d, control = loess.control(surface = 'direct', statistics = 'approximate')); "
        "g <- abs(predict(c, d$s) - d$s); cat(mean(g), median(g), quantile(g, 0.9), max(g))"
    )
    p = cal.Predictions.binary(s, y)
    ours = [make(name)(p) for name in ("ici", "e50", "e90", "emax")]
    assert ours == pytest.approx(in_r(code, s, y, tmp_path), abs=1e-7)


@ROWS
def test_statsmodels(s, y):
    sm = pytest.importorskip("statsmodels.api", reason="STATSMODELS IS ABSENT: pip install calibrant[bench]")
    fit = sm.Logit(y, sm.add_constant(log_odds(s))).fit(disp=0, tol=1e-14)
    p = cal.Predictions.binary(s, y)
    assert [make("intercept")(p), make("slope")(p)] == pytest.approx(list(fit.params), abs=1e-7)


@ROWS
def test_probcal(s, y):
    """Its loess is local linear, so its ICI is another number; its intercept is calibration in the large."""
    reason = "PROBCAL IS ABSENT: pip install calibrant[bench]"
    probcal, peer = pytest.importorskip("probcal", reason=reason), pytest.importorskip("probcal.metrics", reason=reason)
    p = cal.Predictions.binary(s, y)
    assert make("slope")(p) == pytest.approx(peer.calibration_slope(y, s), abs=1e-6)
    assert make("in_the_large")(p) == pytest.approx(peer.calibration_intercept(y, s), abs=1e-6)
    z, hl = peer.spiegelhalter_z(y, s), peer.hosmer_lemeshow(y, s)
    assert cal.calibration_test(p, "spiegelhalter").p_value == pytest.approx(z.p_value, abs=1e-9)
    assert cal.calibration_test(p, "hosmer_lemeshow").p_value == pytest.approx(hl.p_value, abs=1e-9)
    corp = probcal.corp_reliability(y, s, bands=None)
    for kind, name in (("brier", "brier"), ("log", "log_loss")):
        terms = corp_terms(p.curve, kind)
        theirs = [getattr(corp, f"{name}_{part}") for part in ("mcb", "dsc", "unc")]
        assert [terms.miscalibration, terms.discrimination, terms.uncertainty] == pytest.approx(theirs, abs=1e-9)


@ROWS
def test_isotonic_regression_of_scikit_learn(s, y):
    isotonic = pytest.importorskip("sklearn.isotonic").IsotonicRegression().fit(s, y)
    rows = cal.figures.make("corp:resamples=20").data({"m": cal.Predictions.binary(s, y)})
    expected = isotonic.predict([row["confidence"] for row in rows])
    assert [row["accuracy"] for row in rows] == pytest.approx(expected, abs=1e-9)
