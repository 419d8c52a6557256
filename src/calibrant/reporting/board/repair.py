"""Repairs of a board: fitted on one half of the questions, judged on the other.

One way only: maps fitted on each half and judged on the other would err in opposite directions, and their errors
would cancel in the bins of both halves together.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.measuring.answer_table import Bools
from calibrant.measuring.model_noise import Answers
from calibrant.repairing.fit import LEAST_ROWS, fit


@dataclass(frozen=True)
class RepairedAnswers:
    """The repaired confidences of the judged questions, and the map of every model; None with too few answers."""

    answers: Answers
    maps: tuple[Map | None, ...]


def judged_half(n: int, seed: int) -> Bools:
    """The questions that repairs are judged on: a random half, the same for all models."""
    return np.asarray(np.random.default_rng((seed, 2)).permutation(n) % 2 == 1)


def repair(
    answers: Answers, judged: Bools, calibrator: str, on_model: Callable[[int], None] | None = None
) -> RepairedAnswers:
    """Repair every model by its own answers to the questions that are not judged."""
    after, maps = np.full(answers.confidence.shape, np.nan), []
    for i in range(len(after)):
        rows = np.flatnonzero(answers.used[i] & ~judged)
        maps.append(fit_map(answers.confidence[i, rows], answers.correct[i, rows], calibrator))
        rows = np.flatnonzero(answers.used[i] & judged)
        if maps[-1] is not None:
            after[i, rows] = map_values(maps[-1], answers.confidence[i, rows])
        if on_model:
            on_model(1)
    return RepairedAnswers(Answers(after, answers.correct, ~np.isnan(after)), tuple(maps))


def fit_map(scores: Array, correct: Array | Bools, calibrator: str) -> Map | None:
    """Fit a map of confidences; None with fewer than two answers."""
    if len(scores) < LEAST_ROWS:
        return None
    return fit(Predictions.from_confidence(scores, np.asarray(correct).astype(np.int64)), calibrator)


def map_values(fitted: Map, scores: Array) -> Array:
    """Apply a map to confidences, each distinct value once."""
    if not len(scores):
        return scores
    values, level = np.unique(scores, return_inverse=True)
    after = fitted.apply(Predictions.from_confidence(values, None)).confidence
    return np.asarray(after[level])
