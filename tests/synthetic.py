"""Rows made by a seed: calibrated or not, with ties, saturated; and the data sets every measure is tried on."""

import numpy as np

from calibrant.core.predictions import Predictions
from calibrant.measures import find
from calibrant.measures._positive import PositiveMeasure


def draw_rows(n, k, *, seed, sharpness=1.0):
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
    logits, _ = draw_rows(40, 4, seed=7)
    top = logits.argmax(axis=1)
    return Predictions.from_logits(logits, top if right else (top + 1) % 4)


def any_classes(names):
    """Those of the measures that read any number of classes."""
    return [name for name in names if not issubclass(find(name.partition(":")[0]), PositiveMeasure)]


def suited(measure, p):
    """The rows as the measure can read them: one class against the others, where it asks for a positive class."""
    return two_classes(p) if isinstance(measure, PositiveMeasure) else p


def two_classes(p):
    """Class 1 against all others."""
    probs = p.probs.astype(np.float64)
    wanted = np.stack([1 - probs[:, 1], probs[:, 1]], axis=1)
    return Predictions.from_probs(wanted, (p.labels == 1).astype(np.int64))


def absent_class():
    logits, labels = draw_rows(60, 5, seed=8)
    return Predictions.from_logits(logits, np.minimum(labels, 3))


def equal_confidence():
    rng = np.random.default_rng(9)
    probs = [np.roll([0.6, 0.3, 0.1], shift) for shift in rng.integers(0, 3, size=45)]
    return Predictions.from_probs(probs, rng.integers(0, 3, size=45))


DATA = {
    "two classes": lambda: Predictions.from_logits(*draw_rows(60, 2, seed=1)),
    "three classes": lambda: Predictions.from_logits(*draw_rows(90, 3, seed=2)),
    "ten classes": lambda: Predictions.from_logits(*draw_rows(60, 10, seed=3)),
    "overconfident": lambda: Predictions.from_logits(*draw_rows(75, 4, seed=4, sharpness=3.0)),
    "underconfident": lambda: Predictions.from_logits(*draw_rows(75, 4, seed=5, sharpness=0.2)),
    "ties on edges": lambda: Predictions.from_probs(*rounded(61, 3, seed=6)),
    "ties of two classes": lambda: Predictions.from_probs(*rounded(50, 2, seed=16, step=10)),
    "saturated": lambda: Predictions.from_logits(*saturated(40, 4, seed=10)),
    "all correct": lambda: one_answer(right=True),
    "all wrong": lambda: one_answer(right=False),
    "absent class": absent_class,
    "equal confidence": equal_confidence,
    "fewer rows than bins": lambda: Predictions.from_logits(*draw_rows(7, 3, seed=11)),
    "certain and right": lambda: Predictions.from_probs(np.eye(3), [0, 1, 2]),
    "certain and wrong": lambda: Predictions.from_probs(np.eye(3), [1, 2, 0]),
}
