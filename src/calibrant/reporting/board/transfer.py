"""Does a repair learned on one group of questions, or on one model, carry to another?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.maps.map import Map
from calibrant.core.statistics.estimate import subtract
from calibrant.measuring.answer_table import Bools
from calibrant.measuring.model_noise import (
    Answers,
    QuestionDraws,
    bins_of_scores,
    linear_estimates,
)
from calibrant.reporting.board.board import Contrast, Transfer
from calibrant.reporting.board.repair import fit_map, map_values

FEWEST = 20  # answers of a model to one group, in each half of the questions

OnDone = Callable[[int], None] | None


class _ModelAnswers:
    """Answers of one model to some questions."""

    def __init__(self, answers: Answers, model: int, rows: Ints) -> None:
        self.rows = rows
        self.scores = answers.confidence[model, rows]
        self.correct = answers.correct[model, rows].astype(np.float64)


@dataclass
class _MeanError:
    """The mean of many calibration errors, and the influence of each question on it."""

    n: int
    bins: int
    total: float = 0.0
    count: int = 0
    influence: Array | None = None

    def add(self, scores: Array, part: _ModelAnswers) -> float:
        """Add a calibration error of these scores of a part; return its value."""
        correct, rows = part.correct, part.rows
        bin_of = bins_of_scores(scores, self.bins)
        value = np.bincount(bin_of, scores - correct, minlength=self.bins) / len(rows)
        ece, sign = float(np.abs(value).sum()), np.sign(value)
        if self.influence is None:
            self.influence = np.zeros(self.n)
        self.influence[rows] += (sign[bin_of] * (scores - correct) - ece) * (self.n / len(rows))
        self.total, self.count = self.total + ece, self.count + 1
        return ece

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else float("nan")

    def noise(self) -> Array:
        influence = np.zeros(self.n) if self.influence is None else self.influence
        return influence / max(self.count, 1)


def between_groups(
    answers: Answers,
    own_maps: Sequence[Map | None],
    judged: Bools,
    group_of: Ints,
    names: tuple[str, ...],
    calibrator: str,
    draws: QuestionDraws,
    *,
    bins: int,
    level: float,
    on_model: OnDone = None,
) -> Transfer:
    """Every model repaired by its answers to one group of questions and judged on every group."""
    groups, n = len(names), draws.n
    none, own, other, pooled = (_MeanError(n, bins) for _ in range(4))
    sums, counts = np.zeros((groups, groups)), np.zeros((groups, groups))
    lower = 0
    for i, pooled_map in enumerate(own_maps):
        parts = [_split(answers, i, judged, group_of == g) for g in range(groups)]
        able = [g for g, (fits, rows) in enumerate(parts) if min(len(fits), len(rows)) >= FEWEST]
        test = {g: _ModelAnswers(answers, i, parts[g][1]) for g in able}
        before = {g: none.add(part.scores, part) for g, part in test.items()}
        if pooled_map is not None and test:
            for g, scores in _map_parts(pooled_map, test).items():
                pooled.add(scores, test[g])
        for learned in able:
            train = _ModelAnswers(answers, i, parts[learned][0])
            fitted = fit_map(train.scores, train.correct, calibrator)
            for g, scores in _map_parts(fitted, test).items() if fitted is not None else ():
                ece = (own if g == learned else other).add(scores, test[g])
                sums[learned, g] += ece
                counts[learned, g] += 1
                lower += g != learned and ece < before[g]
        if on_model:
            on_model(1)
    matrix = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return _transfer("groups", names, matrix, none, own, other, pooled, lower / max(other.count, 1), draws, level)


def between_models(
    answers: Answers,
    own_maps: Sequence[Map | None],
    judged: Bools,
    names: tuple[str, ...],
    draws: QuestionDraws,
    *,
    bins: int,
    level: float,
    on_model: OnDone = None,
) -> Transfer:
    """Every model repaired by the maps of every other model."""
    models, n = len(names), draws.n
    none, own, other = (_MeanError(n, bins) for _ in range(3))
    matrix = np.full((models, models), np.nan)
    lower = 0
    able = [
        (i, own_map)
        for i, own_map in enumerate(own_maps)
        if own_map is not None and (answers.used[i] & judged).sum() >= FEWEST
    ]
    for i, _ in able:
        test = _ModelAnswers(answers, i, np.flatnonzero(answers.used[i] & judged))
        before = none.add(test.scores, test)
        for learned, fitted in able:
            matrix[learned, i] = (own if learned == i else other).add(map_values(fitted, test.scores), test)
            lower += learned != i and matrix[learned, i] < before
        if on_model:
            on_model(1)
    return _transfer("models", names, matrix, none, own, other, None, lower / max(other.count, 1), draws, level)


def _transfer(
    across: str,
    names: tuple[str, ...],
    matrix: Array,
    none: _MeanError,
    own: _MeanError,
    other: _MeanError,
    pooled: _MeanError | None,
    helps: float,
    draws: QuestionDraws,
    level: float,
) -> Transfer:
    of_none, of_own, of_other = linear_estimates(
        np.array([none.mean, own.mean, other.mean]), np.stack([m.noise() for m in (none, own, other)]), draws
    )
    return Transfer(
        across="groups" if across == "groups" else "models",
        names=names,
        matrix=tuple(tuple(float(v) for v in line) for line in matrix),
        none=none.mean,
        own=own.mean,
        other=other.mean,
        pooled=None if pooled is None else pooled.mean,
        other_minus_none=Contrast.from_estimate(subtract(of_none, of_other), level),
        other_minus_own=Contrast.from_estimate(subtract(of_own, of_other), level),
        helps=helps,
    )


def _split(answers: Answers, model: int, judged: Bools, inside: Bools) -> tuple[Ints, Ints]:
    """The questions of a group that a model is fitted on, and those that it is judged on."""
    used = answers.used[model] & inside
    return np.flatnonzero(used & ~judged), np.flatnonzero(used & judged)


def _map_parts(fitted: Map, parts: Mapping[int, _ModelAnswers]) -> dict[int, Array]:
    """The scores of all parts by one map, which is applied once."""
    after = map_values(fitted, np.concatenate([part.scores for part in parts.values()]))
    ends = np.cumsum([len(part.rows) for part in parts.values()])[:-1]
    return dict(zip(parts, np.split(after, ends), strict=True))
