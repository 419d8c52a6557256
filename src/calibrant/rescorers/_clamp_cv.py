"""Cross-validation of the penalty: which weight serves rows that a perturbation was not learnt on.

A perturbation has as many numbers as an input, so with few calibration rows the objective on these very rows always
likes a small weight. Here each perturbation is judged on the rows that its fit has not seen.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError
from calibrant.rescorers._clamp_fit import Point
from calibrant.rescorers._clamp_passes import Passes
from calibrant.rescorers._clamp_report import HeldOut
from calibrant.rescorers._focal_temperature import best_temperature, focal_mean

Fits = Callable[[Passes, Sequence[float]], Sequence[Point]]  # one point for every weight, on the rows of the passes


def held_out_losses(
    passes: Passes, gamma: float, lams: Sequence[float], fits: Fits, *, folds: int, seed: int, batch: int
) -> list[HeldOut]:
    """The focal loss of all rows for every weight, each row perturbed by a fit that was learnt without it.

    One T is refitted on these logits: a weight is not blamed for a temperature that rows learnt by heart asked for. The
    first of the list is the network without a perturbation, with a temperature fitted in the same way.
    """
    rows = passes.rows(batch)
    if len(rows) < 2 * folds:
        got = f"{len(rows)}"
        raise InputError("lambda_rule='cv'", expected=f"at least {2 * folds} rows", got=got, fix="use fewer folds")
    order = np.random.default_rng(seed).permutation(len(rows))
    logits: list[list[npt.NDArray[np.float64]]] = [[] for _ in lams]
    labels: list[Ints] = []
    for left_out in np.array_split(order, folds):
        others = Passes(passes.network, rows.take(np.setdiff1d(order, left_out)), lambda _: passes.count_one())
        looks = [others.look(point.delta, rows.take(left_out)) for point in fits(others, lams)]
        labels.append(looks[0].labels)
        for parts, look in zip(logits, looks, strict=True):
            parts.append(look.logits)
    zero = _judge(gamma, None, passes.zero.logits, passes.zero.labels)
    every = np.concatenate(labels)
    return [zero, *(_judge(gamma, lam, np.concatenate(z), every) for lam, z in zip(lams, logits, strict=True))]


def _judge(gamma: float, lam: float | None, logits: npt.NDArray[np.float64], labels: Ints) -> HeldOut:
    if not np.isfinite(logits).all():
        return HeldOut(gamma, lam, 1.0, float("inf"))
    T = best_temperature(logits, labels, gamma)
    return HeldOut(gamma, lam, T, focal_mean(logits, labels, gamma, T))
