"""An honest choice: cross-fitted loss over a list of candidates, leaning towards the simpler one, in words."""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from calibrant.calibrators._base import Calibrator
from calibrant.calibrators._catalogue import CATALOGUE
from calibrant.calibrators._fit import fit
from calibrant.calibrators._map import Map
from calibrant.core.arrays import Array, Ints
from calibrant.core.errors import InputError
from calibrant.core.predictions import PROBABILITY_FLOOR, Predictions

CANDIDATES = ("identity", "temperature", "ets", "isotonic", "beta", "svs", "sms")
FOLDS = 5
Z = 1.96


@dataclass(frozen=True)
class Candidate:
    """Cross-fitted NLL of one calibrator, and its difference from doing nothing with a 95 % interval."""

    calibrator: str
    nll: float
    difference: float
    low: float
    high: float
    keeps_argmax: bool


@dataclass(frozen=True)
class Choice:
    """The chosen map, what every candidate reached, and why in words."""

    map: Map
    candidates: list[Candidate]
    verdict: str


def choose(
    p: Predictions,
    candidates: tuple[str, ...] = CANDIDATES,
    *,
    folds: int = FOLDS,
    keep_argmax: bool = False,
    seed: int = 0,
) -> Choice:
    """The simplest calibrator whose cross-fitted NLL is within one standard error of the best one's.

    "identity" is always a candidate and may win. The map is then fitted on all rows.
    """
    names = list(dict.fromkeys(("identity", *candidates)))
    recipes = {name: _recipes(name) for name in names}
    kept = [
        name
        for name, chain in recipes.items()
        if (p.k == 2 or not any(r.binary for r in chain)) and (not keep_argmax or all(r.keeps_argmax for r in chain))
    ]
    losses = {name: -cross_fit(p, name, folds=folds, seed=seed)[1] for name in kept}
    best = min(kept, key=lambda name: losses[name].mean())
    ranked = sorted(kept, key=lambda name: (max(r.complexity for r in recipes[name]), losses[name].mean()))
    winner = next(name for name in ranked if _within_one_error(losses[name], losses[best]))
    rows = [_candidate(name, losses, all(r.keeps_argmax for r in recipes[name])) for name in kept]
    verdict = _verdict(winner, best, losses, p.n)
    made = fit(p, winner)
    return Choice(replace(made, fit=replace(made.fit, diagnosis=f"{made.fit.diagnosis}; {verdict}")), rows, verdict)


def cross_fit(p: Predictions, what: str, *, folds: int = FOLDS, seed: int = 0) -> tuple[Predictions, Array]:
    """Every row calibrated by a map fitted on the other folds, and ln p(true class) of each row."""
    if not 2 <= folds <= p.n:
        raise InputError("folds", expected=f"2 to {p.n} (the rows)", got=str(folds), fix="use 5")
    fold = _folds(p, folds, seed)
    probs, predicted = np.empty((p.n, p.k)), np.empty(p.n, dtype=np.int64)
    for f in range(folds):
        rows = np.flatnonzero(fold == f)
        q = fit(p.take(fold != f), what).apply(p.take(rows))
        probs[rows], predicted[rows] = q.probs, q.predicted
    extras = replace(p.extras, predicted=predicted)
    made = Predictions(probs, p.labels, "probs", extras)
    return made, np.log(np.maximum(made.true_prob, PROBABILITY_FLOOR))


def _folds(p: Predictions, folds: int, seed: int) -> Ints:
    """Folds at random, but with its share of every class in each."""
    shuffled = np.random.default_rng(seed).permutation(p.n)
    order = shuffled[np.argsort(p.labels[shuffled], kind="stable")]
    fold = np.empty(p.n, dtype=np.int64)
    fold[order] = np.arange(p.n) % folds
    return fold


def _recipes(name: str) -> list[Calibrator]:
    return [CATALOGUE.make(one.strip()) for one in name.split("+")]


def _within_one_error(loss: Array, best: Array) -> bool:
    difference = loss - best
    return bool(difference.mean() <= difference.std() / np.sqrt(len(loss)))


def _interval(difference: Array) -> tuple[float, float, float]:
    mean, half = float(difference.mean()), Z * float(difference.std() / np.sqrt(len(difference)))
    return mean, mean - half, mean + half


def _candidate(name: str, losses: dict[str, Array], keeps_argmax: bool) -> Candidate:
    mean, low, high = _interval(losses[name] - losses["identity"])
    return Candidate(name, float(losses[name].mean()), mean, low, high, keeps_argmax)


def _verdict(winner: str, best: str, losses: dict[str, Array], n: int) -> str:
    runner = min(islice((m for m in losses if m != winner), 99), key=lambda m: losses[m].mean(), default=winner)
    if winner == "identity":
        words = "leave it alone"
        if best != "identity":
            mean, low, high = _interval(losses[best] - losses["identity"])
            words += f": {best} gives NLL {mean:+.4f} [{low:+.4f}, {high:+.4f}], within noise"
    else:
        mean, low, high = _interval(losses[winner] - losses["identity"])
        words = f"{winner} helps: NLL {mean:+.4f} [{low:+.4f}, {high:+.4f}]"
    gap = losses[runner] - losses[winner]
    mean, low, high = _interval(gap)
    if runner != winner and low <= 0 <= high and mean != 0:
        needed = int(np.ceil((Z * gap.std() / abs(mean)) ** 2))
        words += f"; {runner} is as good by these {n:,} rows, about {max(needed - n, 1):,} more would settle it"
    return words
