"""A ranking of models with the differences that are significant, all at once, and groups that cannot be told apart."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.measuring.answer_table import Bools
from calibrant.measuring.model_noise import ModelNoise

TINY = 1e-15  # a standard error of 0, but for rounding


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


def rank_models(noise: ModelNoise, sign: int, *, confidence: float = 0.95) -> Ranking:
    """Rank models by a cost (`sign` 1) or a merit (-1), controlling the chance of any wrong statement about a pair.

    Step-down with the largest of all studentised differences (Romano, Wolf 2005), on noise that models share.

    >>> rng = np.random.default_rng(0)
    >>> draws = 0.01 * rng.standard_normal((1000, 3))
    >>> ends = np.zeros(3)
    >>> noise = ModelNoise(value=np.array([0.10, 0.11, 0.30]), low=ends, high=ends, straight=draws, kinked=draws)
    >>> ranking = rank_models(noise, 1)
    >>> ranking.group.tolist(), ranking.first.tolist(), ranking.last.tolist()
    ([1, 1, 2], [1, 1, 3], [2, 2, 3])
    """
    models = len(noise.value)
    ranked = np.flatnonzero(np.isfinite(noise.value))
    cost = sign * noise.value[ranked]
    straight, kinked = sign * noise.straight[:, ranked], sign * noise.kinked[:, ranked]
    worse, critical = _significant(cost, straight, kinked, confidence)
    if noise.resampled:
        worse &= _in_every_draw(cost - straight)
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


def _significant(cost: Array, straight: Array, kinked: Array, confidence: float) -> tuple[Bools, float]:
    """A matrix of which j are significantly worse than which i, and the last critical value."""
    models = len(cost)
    worse = np.zeros((models, models), dtype=bool)
    if models < 2:
        return worse, float("nan")
    bias, error = np.empty((models, models)), np.empty((models, models))
    for i in range(models):
        draws = kinked - straight[:, [i]]  # of every model's cost minus that of i, from the side that is safe
        bias[i], error[i] = np.maximum(draws.mean(axis=0), 0.0), draws.std(axis=0)
    studentised = _studentise(cost - cost[:, None], bias, error)
    np.fill_diagonal(studentised, -np.inf)
    critical = np.inf
    while True:
        largest = np.zeros(len(straight))
        for i in range(models):
            tested = ~worse[i] & (error[i] > TINY)
            tested[i] = False
            if tested.any():
                scaled = (kinked[:, tested] - straight[:, [i]] - bias[i, tested]) / error[i, tested]
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


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A weighted sum of one measure over models, such as the mean of several differences."""

    value: float
    low: float
    high: float
    p_value: float


def contrast(noise: ModelNoise, weights: Array, *, confidence: float = 0.95) -> Contrast:
    """The weighted sum of the values, with its interval and test; each end takes the side that is safe.

    >>> draws = 0.01 * np.random.default_rng(0).standard_normal((1000, 2))
    >>> noise = ModelNoise(value=np.array([0.1, 0.3]), low=draws[0], high=draws[0], straight=draws, kinked=draws)
    >>> difference = contrast(noise, np.array([-1.0, 1.0]))
    >>> round(difference.value, 4), difference.low < 0.2 < difference.high, difference.p_value < 1e-6
    (0.2, True, True)
    """
    members = np.flatnonzero(weights)
    w, part = weights[members], noise.at(members)
    value, tail = float(w @ part.value), (1 - confidence) / 2
    plus, minus = np.maximum(w, 0.0), np.minimum(w, 0.0)
    lower, upper = part.kinked @ plus + part.straight @ minus, part.straight @ plus + part.kinked @ minus
    low, high = value - float(np.quantile(lower, 1 - tail)), value - float(np.quantile(upper, tail))
    side = lower if value > 0 else upper
    error = float(side.std())
    distance = max((value - float(side.mean())) * np.sign(value), 0.0)
    agree = (value - side) * np.sign(value) > 0
    if noise.resampled and not agree.all():
        p = 2 * (1 + float((~agree).sum())) / (1 + len(side))
        return Contrast(value=value, low=min(low, value), high=max(high, value), p_value=min(1.0, p))
    p = 2 * NormalDist().cdf(-distance / error) if error > TINY else float(distance == 0)
    return Contrast(value=value, low=min(low, value), high=max(high, value), p_value=min(1.0, p))
