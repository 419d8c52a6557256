"""The harmonic score, against fractions by hand."""

from fractions import Fraction

import numpy as np
import pytest

from calibrant.core.errors import InputError
from calibrant.measuring.harmonic_score import harmonic_score


@pytest.mark.parametrize(("accuracy", "ece", "beta"), [("0.9", "0.1", "1"), ("0.25", "0.4", "2"), ("1", "0", "1/2")])
def test_weighted_harmonic_mean(accuracy, ece, beta):
    a, e, b = Fraction(accuracy), Fraction(ece), Fraction(beta)
    expected = (1 + b) / (b / (1 - e) + 1 / a)  # the weighted harmonic mean
    assert harmonic_score(float(a), float(e), beta=float(b)) == pytest.approx(float(expected), rel=1e-14)


def test_many_models_and_the_ends():
    scores = harmonic_score([0.0, 1.0, 0.9, 0.9], [0.0, 0.0, 0.1, 1.0])
    np.testing.assert_allclose(scores, [0, 1, 0.9, 0])
    assert harmonic_score(0.0, 1.0) == 0.0
    better_calibrated, more_accurate = harmonic_score([0.8, 0.9], [0.05, 0.2], beta=4)
    assert better_calibrated > more_accurate
    assert np.diff(harmonic_score([0.8, 0.9], [0.05, 0.2], beta=0.25)) > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((93.0, 0.1), "accuracy: expected shares from 0 to 1, got 93"),
        ((0.9, [0.1, 4.0]), "ece: expected shares from 0 to 1, got 4"),
        ((float("nan"), 0.1), "accuracy: expected"),
    ],
)
def test_bad_shares(options, says):
    with pytest.raises(InputError, match=says):
        harmonic_score(*options)


def test_bad_beta():
    with pytest.raises(InputError, match="beta: expected a number above 0, got -1"):
        harmonic_score(0.9, 0.1, beta=-1)
