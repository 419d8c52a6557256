"""Inductive Venn-Abers prediction."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.calibrators._scores import STEP_SCOPE, OfScores, TiedScores, blocks, free_fit, ordered_scores
from calibrant.core.arrays import Array
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions import Predictions


@dataclass(frozen=True)
class VennAbers(OfScores):
    """Isotonic regression with the row added once as a negative (p0) and once as a positive (p1): p1 / (1 - p0 + p1).

    Never says 0 or 1, so the log loss stays finite. The guarantee is the pair's (p0, p1), not the merged number's:
    `width` is the mean of p1 - p0 over the calibration rows.

    >>> p = Predictions.from_probs([[0.6, 0.4], [0.9, 0.1]], [1, 0])
    >>> VennAbers().fit(p)(p).confidence.round(6)  # at 0.6: p0 = 0, p1 = 1/2; at 0.9: p0 = 1/2, p1 = 1
    array([0.333333, 0.666667])
    """

    title: ClassVar[str] = "Inductive Venn-Abers"
    other_names: ClassVar[tuple[str, ...]] = ("ivap",)
    reference: ClassVar[str] = "Vovk, Petej, Fedorova, NeurIPS 2015"

    def fit(self, p: Predictions) -> Map:
        x, y, width = [], [], []
        tied_scores, on = ordered_scores(p, self.scope)
        for tied in tied_scores:
            p0, p1 = pairs(tied)
            knots, values = _stair(tied.x, p0, p1)
            x.append(knots)
            y.append(values)
            width.append(float(tied.size @ (p1[:-1] - p0[1:])) / tied.n)
        step = Curves(x, y, "stair", STEP_SCOPE[self.scope], on)
        return self.build_map(p, step, fit=free_fit(p, self.scope), width=float(np.mean(width)))


def pairs(tied: TiedScores) -> tuple[Array, Array]:
    """p0 and p1, each (m + 1,): at score x[i] they are p0[i + 1] and p1[i], just below it p0[i] and p1[i].

    A positive between two scores joins the upper one, a negative the lower one. So p1 is constant on
    x[i - 1] < s <= x[i], and p0 on x[i] <= s < x[i + 1]; above all scores p1 is 1 and below all of them p0 is 0.
    """
    flipped = TiedScores(-tied.x[::-1], tied.size[::-1], (tied.size - tied.positives)[::-1])
    return 1.0 - _with_a_positive(flipped)[::-1], _with_a_positive(tied)


def _with_a_positive(tied: TiedScores) -> Array:
    """The isotonic fit at each score after one positive is added there, for all scores in one pass.

    Draw the cumulative sums of rows and positives; the fit is the slope of the greatest convex function below them. A
    positive in front of score i moves the i points before it by (-1, -1). Walk i upwards and keep the corners to the
    right of the moving point: each point enters and leaves once. Whole numbers, where rows are counted, so nothing is
    rounded before the division.
    """
    plain = int if tied.whole else float
    pure = tied.positives == tied.size
    run = np.cumsum(np.append(True, ~(pure[1:] & pure[:-1]))) - 1  # scores with positives only act as one
    size, positives = np.bincount(run, tied.size), np.bincount(run, tied.positives)
    first = TiedScores(np.arange(len(size) + 1.0), np.append(1.0, size), np.append(1.0, positives))
    starts, _ = blocks(first)
    rows, good = np.cumsum(first.size)[starts[1:] - 1] - 1, np.cumsum(first.positives)[starts[1:] - 1] - 1
    total = (plain(size.sum()), plain(positives.sum()))
    corners = [total, *zip(rows.astype(plain).tolist()[::-1], good.astype(plain).tolist()[::-1], strict=True), (-1, -1)]
    moved = zip(
        (np.cumsum(size) - 1).astype(plain).tolist(), (np.cumsum(positives) - 1).astype(plain).tolist(), strict=True
    )
    slopes = []
    for w, h in moved:
        w0, h0 = corners[-1]
        w1, h1 = corners[-2]
        slopes.append((h1 - h0) / (w1 - w0))
        if (h - h0) * (w1 - w0) >= (w - w0) * (h1 - h0):
            continue
        corners.pop()
        while len(corners) > 1:
            (w1, h1), (w2, h2) = corners[-1], corners[-2]
            if (h1 - h) * (w2 - w) < (h2 - h) * (w1 - w):
                break
            corners.pop()
        corners.append((w, h))
    return np.append(np.array(slopes)[run], 1.0)


def _stair(x: Array, p0: Array, p1: Array) -> tuple[Array, Array]:
    """Knots of a stair: one just below each score and one at it where they differ, and one above the last."""
    knots = np.stack([np.nextafter(x, -np.inf), x], axis=1).ravel()
    low, high = np.repeat(p0, 2)[1:], np.repeat(p1, 2)[:-1]  # below x[0], at x[0], below x[1], at x[1], ...
    value = high / (1 - low + high)
    keep = np.diff(value) != 0
    return knots[keep], value[np.append(keep, True)]
