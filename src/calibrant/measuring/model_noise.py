"""Measures of many models on the same questions, with noise that the models share question by question.

A draw of noise weighs the questions at random, and every model sees the same weights: what all of them find hard
cancels in their differences.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves.binning import equal_width_edges
from calibrant.core.curves.ranking import answered_at_error
from calibrant.core.statistics.estimate import Draws, Estimate
from calibrant.core.statistics.fewest_rows import FEWEST_ROWS, too_few_rows
from calibrant.core.statistics.residual_noise import l1_noise
from calibrant.core.statistics.sampling import DRAWS, MOST_GROUPS, NoisyValues
from calibrant.measuring.answer_table import Bools

BoardMeasure = Literal["ece", "auroc_correct", "accuracy", "answered"]

RESAMPLES = 1000  # of the share answered, which no formula gives
THRESHOLDS = 500  # at which a resample looks for that share
DIRECTION: dict[BoardMeasure, int] = {
    "ece": 1,
    "auroc_correct": -1,
    "accuracy": -1,
    "answered": -1,
}  # cost: lower is better
MEASURES: tuple[BoardMeasure, ...] = ("ece", "auroc_correct", "accuracy", "answered")


@dataclass(frozen=True)
class Answers:
    """Confidences and outcomes of models by questions; cells that are not `used` count for nothing."""

    confidence: Array
    correct: Bools
    used: Bools

    def among(self, questions: Bools) -> "Answers":
        """The answers with only some questions in use."""
        return replace(self, used=self.used & questions)


@dataclass(frozen=True)
class QuestionDraws:
    """Random weights of n questions: normal for what is nearly linear in them, resampled counts for the rest.

    Questions are dealt at random into at most 1,000 groups that share a normal weight, as in `Sampling`.
    """

    n: int
    seed: int = 0
    draws: int = DRAWS
    resamples: int = RESAMPLES

    def noise(self, influence: Array) -> Array:
        """Draws (draws, m) of the noise of m values from the influence (m, n) of each question on each value."""
        order, starts, normals = self._normals
        sums = np.add.reduceat(influence[:, order], starts, axis=1)
        groups = len(starts)
        return np.asarray(normals @ sums.T * (np.sqrt(groups / max(groups - 1, 1)) / self.n))

    @cached_property
    def _normals(self) -> tuple[Ints, Ints, Array]:
        rng = np.random.default_rng(self.seed)
        groups = min(self.n, MOST_GROUPS)
        group = rng.permutation(self.n) % groups
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(groups))
        return order, starts, rng.standard_normal((self.draws, groups))

    @cached_property
    def counts(self) -> Ints:
        """Counts of each question in each resample (resamples, n)."""
        rng = np.random.default_rng((self.seed, 1))
        batches = [np.bincount(rng.integers(self.n, size=self.n), minlength=self.n) for _ in range(self.resamples)]
        return np.stack(batches).astype(np.int32)


def measure_models(
    answers: Answers,
    draws: QuestionDraws,
    *,
    bins: int = 15,
    max_error: float = 0.05,
    measures: tuple[BoardMeasure, ...] = MEASURES,
    on_model: Callable[[int], None] | None = None,
) -> Mapping[BoardMeasure, list[Estimate]]:
    """Every measure of every model; a model with fewer than 10 questions in use has none."""
    estimates: dict[BoardMeasure, list[Estimate]] = {name: [] for name in measures}
    for i in range(len(answers.used)):
        used = np.flatnonzero(answers.used[i])
        scores, correct = answers.confidence[i, used], answers.correct[i, used].astype(np.float64)
        for name in measures:
            if len(used) < FEWEST_ROWS:
                e = Estimate(value=np.nan, reason=too_few_rows(len(used)))
            elif name == "ece":
                e = _ece(scores, correct, used, draws, bins)
            elif name == "answered":
                e = _share_answered(scores, correct, used, draws, max_error)
            else:
                value, influence = (accuracy if name == "accuracy" else auroc)(scores, correct, used, draws.n)
                e = linear_estimates(np.array([value]), influence[None], draws, bounds=(0.0, 1.0))[0]
            estimates[name].append(e)
        if on_model:
            on_model(1)
    return estimates


def linear_estimates(
    values: Array, influence: Array, draws: QuestionDraws, *, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> list[Estimate]:
    """Values (k,) with their noise from the influence (k, n) of each question on each of them."""
    return [
        Estimate(value=float(value), noise=Draws(lower=noise, upper=noise, test="normal"), bounds=bounds)
        if np.isfinite(value)
        else Estimate(value=float(value), reason="undefined: all answers are right, or all are wrong")
        for value, noise in zip(values, draws.noise(influence).T, strict=True)
    ]


def accuracy(scores: Array, correct: Array, used: Ints, n: int) -> tuple[float, Array]:
    """The share of right answers, and the influence of each of the n questions on it."""
    value = float(correct.mean())
    influence = np.zeros(n)
    influence[used] = (correct - value) * (n / len(used))
    return value, influence


def auroc(scores: Array, correct: Array, used: Ints, n: int) -> tuple[float, Array]:
    """AUROC of correctness, ties counting half, and the influence of each question (DeLong et al. 1988).

    >>> auroc(np.array([0.9, 0.6, 0.7]), np.array([1.0, 0.0, 1.0]), np.array([0, 1, 2]), 3)
    (1.0, array([0., 0., 0.]))
    """
    influence, right, wrong = np.zeros(n), correct.sum(), len(correct) - correct.sum()
    if not right or not wrong:
        return float("nan"), influence
    _, tie = np.unique(scores, return_inverse=True)
    correct_at, wrong_at = np.bincount(tie, correct), np.bincount(tie, 1 - correct)
    wrong_below = np.cumsum(wrong_at) - wrong_at / 2
    correct_above = right - np.cumsum(correct_at) + correct_at / 2
    placed = np.where(correct > 0, wrong_below[tie] / wrong, correct_above[tie] / right)
    value = float((correct * placed).sum() / right)
    influence[used] = (placed - value) * np.where(correct > 0, n / right, n / wrong)
    return value, influence


def gap_influence(residual: Array, bin_of: Ints, used: Ints, n: int, bins: int) -> tuple[Array, Array]:
    """The residuals summed in each bin over the answers in use, and the influence (bins, n) of each question."""
    value = np.bincount(bin_of, residual, minlength=bins) / len(used)
    influence = np.zeros((bins, n))
    influence[:, used] = -value[:, None]
    influence[bin_of, used] += residual
    return value, influence * (n / len(used))


def bins_of_scores(scores: Array, bins: int) -> Ints:
    """The equal-width right-closed bin of each score, as `ece` has it.

    >>> bins_of_scores(np.array([0.0, 0.5, 0.51, 1.0]), 2)
    array([0, 0, 1, 1])
    """
    return np.asarray(equal_width_edges(bins)[1:-1].searchsorted(scores, side="left"))


def straight_influence(value: Array, influence: Array) -> Array:
    """The influence of each question on the sum of |gaps|, as if no gap changed its sign."""
    return np.asarray(np.sign(value) @ influence)


def _ece(scores: Array, correct: Array, used: Ints, draws: QuestionDraws, bins: int) -> Estimate:
    bin_of = bins_of_scores(scores, bins)
    value, influence = gap_influence(scores - correct, bin_of, used, draws.n, bins)
    filled = np.flatnonzero(np.bincount(bin_of, minlength=bins))
    noise = l1_noise(NoisyValues(value[filled], draws.noise(influence[filled])))
    return Estimate(value=float(np.abs(value).sum()), noise=replace(noise, test="normal"), bounds=(0.0, 1.0))


def _share_answered(scores: Array, correct: Array, used: Ints, draws: QuestionDraws, most: float) -> Estimate:
    """The share answered, with noise by resampled questions, looked at in at most 500 thresholds."""
    levels, tie = np.unique(-scores, return_inverse=True)  # the most confident first
    right, wrong = (np.bincount(tie, outcomes).astype(np.float64) for outcomes in (correct, 1 - correct))
    value = answered_at_error(right[None], wrong[None], most)[0]
    if len(levels) > THRESHOLDS:
        cell_of_level = np.minimum(np.cumsum(right + wrong) - 1, len(used) - 1) * THRESHOLDS // len(used)
        tie = np.unique(cell_of_level.astype(np.int64), return_inverse=True)[1][tie]
    cells = int(tie.max()) + 1
    code = 2 * tie + (correct == 0)
    order = np.argsort(code, kind="stable")
    kinds, starts = np.unique(code[order], return_index=True)
    sums = np.zeros((draws.resamples + 1, 2 * cells))
    sums[0] = np.bincount(code, minlength=2 * cells)
    sums[1:, kinds] = np.add.reduceat(draws.counts[:, used[order]], starts, axis=1)
    shares = answered_at_error(sums[:, ::2], sums[:, 1::2], most)
    noise = shares[0] - shares[1:]
    return Estimate(value=float(value), noise=Draws(lower=noise, upper=noise, test="jumps"), bounds=(0.0, 1.0))
