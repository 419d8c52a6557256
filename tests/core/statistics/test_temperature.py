"""The exact temperature: few passes over the rows, because the steps are Newton's."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.statistics import temperature


@pytest.mark.parametrize("native", ["0", "1"])
@pytest.mark.parametrize("sharpness", [0.3, 1.0, 3.0])
def test_newton_needs_few_passes(sharpness, native, monkeypatch):
    monkeypatch.setenv("CALIBRANT_NATIVE", native)
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(3000, 10))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    passes, derivatives = [], temperature._Scores.derivatives

    def counted(self, s, precision):
        passes.append(s)
        return derivatives(self, s, precision)

    monkeypatch.setattr(temperature._Scores, "derivatives", counted)
    fitted = temperature.find_temperature(cal.Predictions.from_logits(sharpness * z, labels))
    assert sharpness == pytest.approx(fitted.T, rel=0.1)
    assert len(passes) <= 8


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_standard_error_is_that_of_the_curvature(k, weighted):
    """By differences of the weighted mean NLL as a function of ln T; shares of rows count by Kish's formula."""
    rng = np.random.default_rng(k)
    z = 2 * rng.normal(size=(400, k))
    labels = (0.6 * z + rng.gumbel(size=z.shape)).argmax(axis=1)
    weights = rng.uniform(0.1, 3.0, 400) if weighted else None
    p = cal.Predictions.from_logits(z, labels, weights=weights)
    w = np.ones(400) if weights is None else weights

    def nll(log_T):
        scaled = z / np.exp(log_T)
        return w @ (np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(400), labels]) / w.sum()

    fit, step = temperature.find_temperature(p), 1e-3
    at = np.log(fit.T)
    curvature = (nll(at + step) - 2 * nll(at) + nll(at - step)) / step**2
    rows = w.sum() ** 2 / (w @ w)
    assert fit.stderr == pytest.approx(fit.T / np.sqrt(rows * curvature), rel=1e-3)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_labels_that_never_lose_have_no_finite_temperature(k):
    """Every label has the largest logit of its row, once together with another class."""
    z = np.random.default_rng(0).normal(size=(20, k))
    labels = z.argmax(axis=1)
    z[0, (labels[0] + 1) % k] = z[0, labels[0]]
    assert temperature.find_temperature(cal.Predictions.from_logits(z, labels)).diagnosis == "separable"
