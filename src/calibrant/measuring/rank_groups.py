"""A ranking of models with the differences that are significant, all at once, and groups that cannot be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.statistics.estimate import (
    TINY,
    Draws,  # noqa: F401  used by the example
    Estimate,
    stack_draws,
)
from calibrant.measuring.answer_table import Bools


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Models by the value of one measure, best first; models without a value are in no rank (0).

    Every statement of `worse` holds at once with the confidence asked for.
    """

    order: tuple[int, ...]
    worse: Bools  # [i, j]: model j is significantly worse than model i
    first: Ints  # the best rank that each model may have
    last: Ints
    group: Ints  # 1, 2, ...: no member of a group is significantly worse than the best of it
    critical: float  # standard errors that a difference must exceed

    @property
    def groups(self) -> int:
        return int(self.group.max(initial=0))

    @property
    def told_apart(self) -> float:
        """The share of pairs of ranked models that differ significantly."""
        n = len(self.order)
        return float(self.worse.sum() / (n * (n - 1) / 2)) if n > 1 else float("nan")


def rank_models(estimates: Sequence[Estimate], sign: int, *, confidence: float = 0.95) -> Ranking:
    """Rank models by a cost (`sign` 1) or a merit (-1), controlling the chance of any wrong statement about a pair.

    Step-down with the largest of all studentised differences (Romano, Wolf 2005), on noise that models share.

    >>> rng = np.random.default_rng(0)
    >>> noise = 0.01 * rng.standard_normal((3, 1000))
    >>> models = [Estimate(value=v, noise=Draws(lower=d, upper=d)) for v, d in zip([0.10, 0.11, 0.30], noise)]
    >>> ranking = rank_models(models, 1)
    >>> ranking.group.tolist(), ranking.first.tolist(), ranking.last.tolist()
    ([1, 1, 2], [1, 1, 3], [2, 2, 3])
    """
    models, values = len(estimates), np.array([e.value for e in estimates])
    ranked = np.flatnonzero(np.isfinite(values))
    cost = sign * values[ranked]
    worse, critical = np.zeros((len(ranked), len(ranked)), dtype=bool), float("nan")
    if len(ranked) > 1:
        lower, upper, jumps = stack_draws([e for e in estimates if np.isfinite(e.value)])
        worse, critical = _significant(cost, sign * lower, sign * upper, confidence)
        if jumps:
            worse &= _in_every_draw(cost - sign * upper)
    all_worse = np.zeros((models, models), dtype=bool)
    all_worse[np.ix_(ranked, ranked)] = worse
    first, last, group = (np.zeros(models, dtype=np.int64) for _ in range(3))
    first[ranked] = 1 + worse.sum(axis=0)
    last[ranked] = len(ranked) - worse.sum(axis=1)
    order = ranked[np.argsort(cost, kind="stable")]
    left, number = list(order), 0
    while left:
        number += 1
        members = [j for j in left if not all_worse[left[0], j]]
        group[members] = number
        left = [j for j in left if all_worse[left[0], j]]
    return Ranking(
        order=tuple(int(i) for i in order), worse=all_worse, first=first, last=last, group=group, critical=critical
    )


def _significant(cost: Array, lower: Array, upper: Array, confidence: float) -> tuple[Bools, float]:
    """A matrix of which j are significantly worse than which i, and the last critical value."""
    models = len(cost)
    worse = np.zeros((models, models), dtype=bool)
    bias, error = np.empty((models, models)), np.empty((models, models))
    for i in range(models):
        draws = lower - upper[:, [i]]  # of every model's cost minus that of i, from the side that is safe
        bias[i], error[i] = np.maximum(draws.mean(axis=0), 0.0), draws.std(axis=0)
    studentised = _studentise(cost - cost[:, None], bias, error)
    np.fill_diagonal(studentised, -np.inf)
    critical = np.inf
    while True:
        largest = np.zeros(len(upper))
        for i in range(models):
            tested = ~worse[i] & (error[i] > TINY)
            tested[i] = False
            if tested.any():
                scaled = (lower[:, tested] - upper[:, [i]] - bias[i, tested]) / error[i, tested]
                largest = np.maximum(largest, scaled.max(axis=1))
        critical = min(critical, float(np.quantile(largest, confidence)))
        significant = studentised > critical
        if (significant == worse).all():
            return worse, critical
        worse = significant


def _in_every_draw(costs: Array) -> Bools:
    """A matrix [i, j]: whether j costs more than i in every draw."""
    return np.stack([(costs - costs[:, [i]]).min(axis=0) > 0 for i in range(costs.shape[1])])


def _studentise(difference: Array, bias: Array, error: Array) -> Array:
    """Differences in standard errors; without noise a difference is as sure as can be, or is none."""
    certain = np.where(difference > 0, np.inf, -np.inf)
    return np.divide(difference - bias, error, out=certain, where=error > TINY)
