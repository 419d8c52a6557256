"""Ten sets of rows whose truth is known, and the options of their reports: what a verdict must get right."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.core.predictions import Predictions

CLASSES = ["Trouser", "Coat", "Shirt", "Sneaker", "Bag"]


@dataclass
class Case:
    """Rows, options of the report, and what is true of them."""

    rows: Predictions
    options: dict[str, Any] = field(default_factory=dict)


def draw_logits(n, seed, *, spread=2.0):
    """Logits that are calibrated, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    z = spread * rng.normal(size=(n, len(CLASSES)))
    return z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def sharpened(n, seed, factor, **options):
    z, y = draw_logits(n, seed, **options)
    return Predictions.from_logits(factor * z, y)


def useless():
    """Always says 83.4 %, is right 83.4 % of the time."""
    return Case(Predictions.from_confidence(np.full(5000, 0.834), np.arange(5000) < 4170))


def repaired_wholly():
    return Case(sharpened(6000, 1, 1.6), {"fit_on": sharpened(6000, 2, 1.6)})


def repaired_in_part():
    """The temperature of the rows to fit on is too small for these, and predictions of Shirt are worse than others."""

    def draw(n, seed, factor):
        z, y = draw_logits(n, seed, spread=2.5)
        rng = np.random.default_rng(seed + 100)
        z[:, 2] += 0.6
        spoilt = (z.argmax(axis=1) == 2) & (rng.random(n) < 0.22)
        y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        return Predictions.from_logits(factor * z, np.where(spoilt, 1, y))

    return Case(draw(4000, 3, 2.1), {"fit_on": draw(4000, 4, 1.5), "class_names": CLASSES})


def one_group_harmed():
    """One group of four has logits that are three times too large."""
    names = np.array(["hospital A", "hospital B", "clinic", "mobile app"])

    def draw(n, seed):
        z, y = draw_logits(n, seed, spread=1.2)
        groups = np.random.default_rng(seed).choice(names, n, p=[0.5, 0.2, 0.15, 0.15])
        return Predictions.from_logits(np.where(groups == "mobile app", 3, 1)[:, None] * z, y, groups=groups)

    return Case(draw(8000, 5), {"fit_on": draw(8000, 6), "group_name": "site", "calibrators": ["temperature", "ets"]})


def easier_to_fit():
    """The rows to fit on are easier than the rows to judge, by the spread of their logits; T is 1.6 for both."""
    return Case(sharpened(4000, 7, 1.6, spread=3.2), {"fit_on": sharpened(3000, 8, 1.6, spread=4.2)})


def scores_reversed():
    rng = np.random.default_rng(9)
    s = rng.random(3000)
    return Case(Predictions.binary(1 - s, rng.random(3000) < s))


def few():
    """24 of 30 are right, as said."""
    confidence = np.linspace(0.7, 0.92, 30)
    return Case(Predictions.from_confidence(confidence, np.arange(30) % 5 > 0))


def calibrated():
    rng = np.random.default_rng(10)
    confidence = rng.beta(0.5, 0.5, size=30_000)
    return Case(Predictions.from_confidence(confidence, rng.random(30_000) < confidence))


def underconfident():
    """As label smoothing makes it: logits that are too small, and in the right order."""
    return Case(sharpened(6000, 11, 0.65, spread=3.0), {"fit_on": sharpened(6000, 12, 0.65, spread=3.0)})


def rare_with_costs():
    """One row of a hundred is positive; scores are too far out, and a miss costs as much as 50 false alarms."""

    def draw(n, seed):
        rng = np.random.default_rng(seed)
        logit = rng.normal(-6.5, 2.0, size=n)
        y = rng.random(n) < 1 / (1 + np.exp(-logit))
        return Predictions.binary(1 / (1 + np.exp(-(1.5 * logit + 1))), y)

    return Case(draw(40_000, 13), {"fit_on": draw(40_000, 14), "cost": "fn=50,fp=1"})


CASES = {
    case.__name__: case
    for case in (
        useless,
        repaired_wholly,
        repaired_in_part,
        one_group_harmed,
        easier_to_fit,
        scores_reversed,
        few,
        calibrated,
        underconfident,
        rare_with_costs,
    )
}
