"""Made-up predictions reach what they are asked for."""

import numpy as np
import pytest

from calibrant.core.errors import InputError
from calibrant.measures import make
from calibrant.measuring.synthetic import synthetic


@pytest.mark.parametrize(("ece", "auroc"), [(0.06, 0.774), (0.18, 0.9946), (0.08, 0.89)])
def test_the_three_cases_of_the_published_figure(ece, auroc):
    """Singh, Bay, Sengupta, Mirabile, figure 1, a to c: half of 1,000 predictions are right."""
    p = synthetic(ece=ece, auroc=auroc)
    assert (p.n, p.correct.mean()) == (1000, 0.5)
    assert make("ece")(p) == pytest.approx(ece, abs=5e-4)
    right, wrong = p.confidence[p.correct], p.confidence[~p.correct]
    assert (right[:, None] > wrong).mean() == pytest.approx(auroc, abs=5e-4)


def test_seeds_accuracy_and_classes():
    p, again, other = (synthetic(ece=0.1, auroc=0.8, n=400, accuracy=0.75, classes=4, seed=s) for s in (1, 1, 2))
    assert (p.n, p.k, p.correct.mean()) == (400, 4, 0.75)
    np.testing.assert_array_equal(p.probs, again.probs)
    assert not np.array_equal(p.labels, other.labels)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ece": 0.0, "auroc": 1.0}, "ECE 0 and AUROC 1 at accuracy 0.5, got ECE .* at best"),
        ({"ece": 6, "auroc": 0.9}, "ece: expected 0 to 1, got 6"),
        ({"ece": 0.1, "auroc": 0.9, "accuracy": 1.0}, "accuracy: expected right and wrong rows, got 1"),
        ({"ece": 0.1, "auroc": 0.9, "classes": 1}, "expected n of 10 and 2 classes or more"),
    ],
)
def test_what_cannot_be_made(options, says):
    with pytest.raises(InputError, match=says):
        synthetic(n=200, **options)
