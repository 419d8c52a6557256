"""Values of a measure where all outcomes are alike: rows without an error do not rule errors out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.sampling import Sampling
from calibrant.core.statistics.shares import unseen_rate
from calibrant.measures import Measure

RATES = 8  # between none and the largest possible


def single_outcome(p: Predictions) -> bool:
    """Whether all predictions are right, or all wrong, or all rows positive, or all negative."""
    return any(bool(outcomes.all()) or not outcomes.any() for outcomes in (p.correct, p.outcome))


def values_of_unseen(m: Measure, p: Predictions, value: float, rows: Sampling) -> Callable[[float], Sequence[float]]:
    """The values that rates of other outcomes up to `unseen_rate` would give, spread evenly, by the chance of a tail.

    A calibration error reaches 0 unless calibrated models rarely show such a value.
    """
    units = p.n_effective if p.clusters is None else float(rows.units)

    @cache
    def chance() -> float:
        """How often a calibrated model shows such a value."""
        return float(np.mean(m.draws_if_calibrated(p, replace(rows, resamples=m.resamples)) >= value))

    def values(tail: float) -> Sequence[float]:
        rates = unseen_rate(units, tail) * np.arange(1, RATES + 1) / RATES
        unseen = [m(with_other_outcomes(p, rate)) for rate in rates]
        return [v for v in unseen if np.isfinite(v)] + ([-np.inf] if m.of_calibration and chance() > tail else [])

    return values


def with_other_outcomes(p: Predictions, rate: float) -> Predictions:
    """The rows of p with a share of every row turned: right ones go to the runner-up, wrong ones to the prediction.

    >>> p = Predictions.from_confidence([0.9, 0.8], correct=[1, 1])
    >>> round(with_other_outcomes(p, 0.25).mean(with_other_outcomes(p, 0.25).correct), 4)
    0.75
    """
    weights: Array = np.ones(p.n) if p.weights is None else p.weights
    twice = p.take(np.tile(np.arange(p.n), 2))
    row_data = replace(twice.row_data, weights=np.concatenate([weights * (1 - rate), weights * rate]))
    labels = np.concatenate([p.labels, _other_labels(p)])
    return Predictions._from_valid(twice.values, labels, twice.score_type, row_data)


def _other_labels(p: Predictions) -> Array:
    if p.task in ("binary", "confidence"):
        return np.asarray(1 - p.labels)
    runner_up = np.where(np.arange(p.k) == p.predicted[:, None], -np.inf, p.values).argmax(axis=1)
    return np.asarray(np.where(p.correct, runner_up, p.predicted))
