"""Scores and outcomes with equal scores pooled: the input of every calibrator of one score at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.calibrators._base import EVERY_TASK, PER_CLASS, Calibrator
from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves.binning import equal_shares
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import WeightedCurve, WeightedCurves, is_whole, sort_curve
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Fit
from calibrant.core.maps.steps import Scope
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.text.number_format import name_classes
from calibrant.core.text.vocabulary import vocabulary_of

Of = Literal["top", "ovr"]  # the predicted class, or every class against the rest
X = Literal["probs", "log_odds"]  # what the x of tied scores are
STEP_SCOPE: dict[Of, Scope] = {"top": "top", "ovr": "classes"}


@dataclass(frozen=True)
class OfScores(Calibrator):
    """A calibrator of one score at a time. Of the top score it never changes a prediction; of every class it may.

    The top score is the confidence, or P(positive) of binary predictions.
    """

    scope: Of = "top"

    keeps_argmax: ClassVar[bool] = True
    tasks: ClassVar[tuple[Task, ...]] = EVERY_TASK
    of_score: ClassVar[bool] = True
    complexity: ClassVar[int] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scope == "ovr":  # facts of this recipe, not of the class
            object.__setattr__(self, "keeps_argmax", False)
            object.__setattr__(self, "tasks", PER_CLASS)
            object.__setattr__(self, "needs_every_class", True)
            object.__setattr__(self, "complexity", max(2, type(self).complexity))


@dataclass(frozen=True, eq=False)
class TiedScores:
    """Distinct scores, ascending, with the number of rows and of positive outcomes at each.

    Rows that have shares for weights count as many as they are worth, so these need not be whole numbers.
    """

    x: Array  # (m,)
    size: Array  # (m,)
    positives: Array  # (m,)

    @property
    def n(self) -> float:
        return float(self.size.sum())

    @cached_property
    def whole(self) -> bool:
        return is_whole(self.size)

    @property
    def rate(self) -> Array:
        return self.positives / self.size

    def begins(self, count: int) -> Array:
        """Where chunks after the first begin, when all rows make `count` nearly equal chunks; no empty ones."""
        if not self.whole:
            return self.n * np.arange(1, count) / count
        begins = equal_shares(round(self.n), count)[1:-1]
        return begins[begins < self.n]

    def halfway(self, places: Array) -> Array:
        """Halfway between the scores in front of and behind places in the sorted list of all rows."""
        sums = np.cumsum(self.size)
        before, behind = (np.searchsorted(sums, places, side) for side in ("left", "right"))
        last = len(self.x) - 1
        return np.asarray((self.x[np.minimum(before, last)] + self.x[np.minimum(behind, last)]) / 2)

    def above(self, edges: Array, values: Array) -> Array:
        """Sums of `values` (one per distinct score) over the bins that right-closed edges make."""
        sums = np.concatenate([[0.0], np.cumsum(values)])[np.searchsorted(self.x, edges, side="right")]
        return np.diff(sums, prepend=0.0, append=values.sum())


def tied_scores(p: Predictions, scope: Of) -> Iterator[TiedScores]:
    """The scores of the predicted class, or those of each class."""
    if scope == "top":
        yield tied_scores_of(p.curve)
        return
    for block in p.class_curves():
        if isinstance(block, WeightedCurves):
            yield from map(tied_scores_of, block.curves)
            continue
        for x, size, positives in block.groups():
            yield TiedScores(x, size, positives)


def reads_log_odds(p: Predictions) -> bool:
    """Whether rows have one logit: it tells apart scores next to 0 and 1, which floats cannot."""
    return p.score_type == "logits" and p.task in ("binary", "confidence")


def log_odds(p: Predictions) -> Array:
    """The one logit of each row, (n,)."""
    return np.subtract(p.values[:, 1], p.values[:, 0], dtype=np.float64)


def ordered_scores(p: Predictions, scope: Of) -> tuple[Iterator[TiedScores], X]:
    """For fits that read the order of scores: these, or log-odds where rows have one logit; and which they are."""
    if scope == "ovr" or not reads_log_odds(p):
        return tied_scores(p, scope), "probs"
    return iter([tied_scores_of(sort_curve(log_odds(p), p.outcome, p.weights))]), "log_odds"


def tied_scores_of_classes(p: Predictions) -> TiedScores:
    """All n * k probabilities."""
    present = np.arange(p.k) == p.labels[:, None]
    weights = None if p.weights is None else np.repeat(p.weights, p.k)
    return tied_scores_of(sort_curve(p.probs.ravel(), present.ravel(), weights))


def tied_scores_of(curve: Curve) -> TiedScores:
    x = curve.scores[curve.group_ends - 1]
    if not isinstance(curve, WeightedCurve):
        positives, negatives = curve.groups
        return TiedScores(x, positives + negatives, positives)
    begins = np.append(
        0, curve.group_ends[:-1]
    )  # both summed alike, so that a score with positives only has the rate 1
    size, positives = (np.add.reduceat(w, begins) for w in (curve.weights, curve.weights * curve.outcomes))
    return TiedScores(x, size * curve.weight_unit, positives * curve.weight_unit)


def blocks(tied: TiedScores) -> tuple[Ints, Array]:
    """The start of each flat block of the isotonic fit (an index into the scores), and its value.

    Values are quotients of whole numbers, so blocks of equal value are equal to the last bit, and become one.
    """
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(tied.rate, weights=tied.size)
    starts = np.asarray(fitted.blocks[:-1], dtype=np.int64)
    value = np.add.reduceat(tied.positives, starts) / np.add.reduceat(tied.size, starts)
    new = np.append(True, np.diff(value) != 0)
    return starts[new], value[new]


def isotonic_knots(tied: TiedScores) -> tuple[Array, Array]:
    """Knots of the isotonic fit, linear in between: the two ends of each flat block."""
    starts, value = blocks(tied)
    ends = np.append(starts[1:], len(tied.x)) - 1
    place = np.stack([starts, ends], axis=1).ravel()
    keep = np.append(True, np.diff(place) > 0)
    return tied.x[place[keep]], np.repeat(value, 2)[keep]


def tilt(x: Array, y: Array, by: float = 1e-9) -> tuple[Array, Array]:
    """Add `by` times the score, from 0 to 1, to a line: ties become differences."""
    low, high = ([0.0], y[:1]) if x[0] > 0 else ([], []), ([1.0], y[-1:]) if x[-1] < 1 else ([], [])
    wide = np.concatenate([low[0], x, high[0]])
    return wide, np.concatenate([low[1], y, high[1]]) + by * wide


def equal_mass_edges(tied: TiedScores, count: int) -> Array:
    """Inner edges halfway between neighbours of different chunks; ties stay together, so there may be fewer."""
    return np.unique(tied.halfway(tied.begins(count)))


def middles(edges: Array) -> Array:
    """The middle of each bin that inner edges make of 0 .. 1."""
    whole = np.concatenate([[0.0], edges, [1.0]])
    return np.asarray((whole[1:] + whole[:-1]) / 2)


def check_bins(bins: int) -> None:
    if bins < 1:
        raise InputError("bins", expected="1 or more", got=str(bins), fix="use 15")


def free_fit(p: Predictions, scope: Of | Literal["shared"]) -> Fit:
    """The report of a fit that cannot fail, with a word about what the rows could not teach it."""
    if scope == "top":
        positives = int(p.outcome.sum())
        if positives in (0, p.n):
            words = vocabulary_of(p.task)
            return Fit(diagnosis=f"converged; every {words.row} is {words.row_outcomes[positives > 0]}")
    else:
        absent = np.flatnonzero(np.bincount(p.labels, minlength=p.k) == 0)
        if len(absent):
            return Fit(diagnosis=f"converged; {name_classes(absent)} not among the labels")
    spread = p.curve.scores if scope == "top" else p.values
    return Fit(diagnosis="converged; all scores are equal") if np.ptp(spread) == 0 else Fit()
