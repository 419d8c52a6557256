"""Base rates of the rows against those of the fit, and whether they explain how the scores differ."""

from math import sqrt
from statistics import NormalDist

import numpy as np

from calibrant.core.predictions import Predictions
from calibrant.core.text import number_format as fmt
from calibrant.repairing.adapt import LEVEL, rates_explain

SHIFTED = 0.01  # chance that rates differ by chance, over all classes, from which on it is told
RESAMPLES = 100
MOST_CLASSES = 20  # one distribution function each


def base_rate_notes(p: Predictions, fit_on: Predictions | None, seed: int = 0) -> tuple[str, ...]:
    """A sentence where class frequencies differ significantly; none otherwise, or where rows come in clusters."""
    if fit_on is None or p.task not in ("binary", "multiclass") or p.k > MOST_CLASSES:
        return ()
    if p.clusters is not None or fit_on.clusters is not None:
        return ()
    here, there = _rates(p), _rates(fit_on)
    if not (here.all() and there.all()) or (chance := _chance(here, there, p, fit_on)) >= SHIFTED:
        return ()
    if p.task == "binary":
        changed = f"{fmt.percent(here[1])} of these rows are positive, {fmt.percent(there[1])} of the fitting set"
    else:
        c = int(np.abs(here - there).argmax())
        name = p.classes[c] if p.classes else c
        changed = f"class {name} is {fmt.percent(here[c])} of these rows, {fmt.percent(there[c])} of the fitting set"
    p_value = rates_explain(fit_on, p, resamples=RESAMPLES, seed=seed)
    chance_of_gap = fmt.chance(p_value)
    if p_value >= LEVEL:
        explanation = (
            f"The base rate alone explains how the scores differ ({chance_of_gap}): calibrant adapt corrects it"
        )
    else:
        explanation = (
            f"The base rate alone does not explain how the scores differ ({chance_of_gap}): more has changed, and "
            "calibrant adapt is not enough"
        )
    return (f"Other base rates: {changed} ({fmt.chance(chance)}). {explanation}.",)


def _rates(p: Predictions) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    weights = np.ones(p.n) if p.weights is None else p.weights
    return np.asarray(np.bincount(p.labels, weights, p.k) / weights.sum())


def _chance(here: object, there: object, p: Predictions, fit_on: Predictions) -> float:
    """The p-value of the difference in the class that differs most: a normal test of two shares, times their number."""
    a, b = np.asarray(here), np.asarray(there)
    n, m = p.n_effective, fit_on.n_effective
    shared = (n * a + m * b) / (n + m)
    z = float((np.abs(a - b) / np.sqrt(shared * (1 - shared))).max()) / sqrt(1 / n + 1 / m)
    tests = 1 if len(a) == 2 else len(a)
    return min(1.0, tests * 2 * (1 - NormalDist().cdf(z)))
