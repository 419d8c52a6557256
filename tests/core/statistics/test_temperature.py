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
