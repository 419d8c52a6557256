"""The numbers of docs/methods/vectors.md#measures: 8 samples, 3 classes, computed there with independent code."""

import pytest

from calibrant.core.predictions import Predictions
from calibrant.measures import make

PROBS = [
    [0.91, 0.06, 0.03],
    [0.83, 0.12, 0.05],
    [0.62, 0.27, 0.11],
    [0.56, 0.25, 0.19],
    [0.18, 0.71, 0.11],
    [0.09, 0.86, 0.05],
    [0.29, 0.28, 0.43],
    [0.04, 0.02, 0.94],
]
LABELS = [0, 0, 1, 0, 1, 1, 0, 2]

VALUES = {
    "accuracy": 0.75,
    "error": 0.25,
    "gap": 0.7325 - 0.75,
    "ece:bins=5": 0.1,
    "ece:bins=10": 0.28,
    "mce:bins=5": 0.165,
    "mce:bins=10": 0.62,
    "avgce:bins=5": 0.095,
    "rmsce:bins=5": 0.1158663023,
    "ece:bins=5,norm=2": 0.1158663023,
    "ece:bins=2,scheme=mass": 0.0975,
    "ece:bins=4,scheme=mass": 0.1,
    "classwise:bins=5": 0.175,
    "classwise:bins=10": 0.175,
    "overconfidence:bins=5": 0.02743125,
    "ks": 0.07625,
    "mmce": 0.0705714342,
    "sece:h=0.1": 0.0868584426,
    "entropy": 0.6790662665,
    "brier": 0.276475,
    "nll": 0.4953568789,
    "auroc_correct": 11 / 12,
    "aurc": 0.0699404762,
    "aupr_success": 0.9761904762,
    "aupr_error": 0.8333333333,
}


@pytest.fixture
def p():
    return Predictions.from_probs(PROBS, LABELS)


@pytest.mark.parametrize("spec", VALUES)
def test_number_of_the_specification(p, spec):
    assert make(spec)(p) == pytest.approx(VALUES[spec], abs=1e-9)


def test_correct_and_mean_confidence(p):
    assert p.correct.tolist() == [True, True, False, True, True, True, False, True]
    assert p.confidence.mean() == pytest.approx(0.7325, abs=1e-12)


def test_smooth_to_the_digits_printed(p):
    assert make("smooth")(p) == pytest.approx(0.10597, abs=5e-6)


def test_terms_of_equation_9(p):
    """alpha - beta - gamma' = 0.07625, from our own auroc, accuracy and confidence."""
    right, n = p.correct.sum(), p.n
    wrong = n - right
    alpha = p.confidence.mean()
    beta = 2 * make("auroc_correct")(p) * right * wrong / n**2
    gamma = (right**2 + wrong**2) / (2 * n**2)
    assert (alpha, beta, gamma) == pytest.approx((0.7325, 0.34375, 0.3125), abs=1e-9)
    assert alpha - beta - gamma == pytest.approx(0.07625, abs=1e-9)
