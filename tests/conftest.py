"""Data sets every measure is tried on, and a hypothesis profile that gives the same examples in every run."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from calibrant.core.predictions import Predictions

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40, database=None)
settings.load_profile("steady")

LOGIT_FILES = sorted((Path(__file__).parents[2] / "shared" / "data" / "logits").glob("*.npz"))


def drawn(n, k, *, seed, sharpness=1.0):
    """Random logits and labels drawn from their softmax: calibrated when sharpness is 1, overconfident above."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    return sharpness * logits, (logits + rng.gumbel(size=(n, k))).argmax(axis=1)


def rounded(n, k, *, seed, step=20):
    """Probabilities that are multiples of 1 / step: many ties, many values exactly on bin edges."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(step, rng.dirichlet(np.ones(k), size=n))
    return counts / step, rng.integers(0, k, size=n)


def saturated(n, k, *, seed):
    """Logits of -1e4, 0 and 1e4: probabilities are exactly 0, 1, or shared evenly between ties."""
    rng = np.random.default_rng(seed)
    return 1e4 * rng.integers(-1, 2, size=(n, k)).astype(float), rng.integers(0, k, size=n)


def one_answer(right):
    logits, _ = drawn(40, 4, seed=7)
    top = logits.argmax(axis=1)
    return Predictions.from_logits(logits, top if right else (top + 1) % 4)


def absent_class():
    logits, labels = drawn(60, 5, seed=8)
    return Predictions.from_logits(logits, np.minimum(labels, 3))


def equal_confidence():
    rng = np.random.default_rng(9)
    probs = [np.roll([0.6, 0.3, 0.1], shift) for shift in rng.integers(0, 3, size=45)]
    return Predictions.from_probs(probs, rng.integers(0, 3, size=45))


DATA = {
    "two classes": lambda: Predictions.from_logits(*drawn(60, 2, seed=1)),
    "three classes": lambda: Predictions.from_logits(*drawn(90, 3, seed=2)),
    "ten classes": lambda: Predictions.from_logits(*drawn(60, 10, seed=3)),
    "overconfident": lambda: Predictions.from_logits(*drawn(75, 4, seed=4, sharpness=3.0)),
    "underconfident": lambda: Predictions.from_logits(*drawn(75, 4, seed=5, sharpness=0.2)),
    "ties on edges": lambda: Predictions.from_probs(*rounded(61, 3, seed=6)),
    "ties of two classes": lambda: Predictions.from_probs(*rounded(50, 2, seed=16, step=10)),
    "saturated": lambda: Predictions.from_logits(*saturated(40, 4, seed=10)),
    "all correct": lambda: one_answer(right=True),
    "all wrong": lambda: one_answer(right=False),
    "absent class": absent_class,
    "equal confidence": equal_confidence,
    "fewer rows than bins": lambda: Predictions.from_logits(*drawn(7, 3, seed=11)),
    "certain and right": lambda: Predictions.from_probs(np.eye(3), [0, 1, 2]),
    "certain and wrong": lambda: Predictions.from_probs(np.eye(3), [1, 2, 0]),
}


@pytest.fixture(params=DATA)
def any_data(request):
    """Each of the data sets in turn."""
    return DATA[request.param]()


@pytest.fixture(scope="session")
def make_data():
    """One of the data sets by its name."""
    return lambda name: DATA[name]()


@pytest.fixture
def p():
    """A plain data set: 120 rows, 4 classes, overconfident."""
    return Predictions.from_logits(*drawn(120, 4, seed=12, sharpness=2.0))


@pytest.fixture
def tied():
    """A data set with many ties and values on bin edges."""
    return Predictions.from_probs(*rounded(64, 4, seed=13))


@pytest.fixture(params=LOGIT_FILES, ids=lambda file: file.stem)
def real_file(request):
    """Each of the real files in turn; no tests where there are none."""
    return request.param
