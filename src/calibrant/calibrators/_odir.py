"""Off-diagonal and intercept regularisation, with its strength chosen by cross-validation."""

from typing import Any, Literal

import numpy as np

from calibrant.calibrators._linear import LinearFit, fit_linear
from calibrant.calibrators._scaling import Ridge
from calibrant.core.arrays import Array, Ints
from calibrant.core.predictions import Predictions
from calibrant.core.recalibrate import deal_folds

STRENGTHS = (1e-2, 1e-1, 1.0, 10.0, 1e2, 1e3, 1e4)
FOLDS = 5

Select = Literal["cross_validation", "cal_ece"]


def odir(strength: float, bias_strength: float, k: int) -> Ridge:
    """lambda / (k (k - 1)) sum of squares off the diagonal + mu / k sum of squared biases."""
    return Ridge(0.0, strength / (k * (k - 1)), bias_strength / k)


def fit_odir(z: Array, labels: Ints, select: Select, grid: bool) -> tuple[LinearFit, dict[str, Any]]:
    """The best of seven strengths (or of all 49 pairs), refitted on all rows."""
    k = z.shape[1]
    pairs = [(s, m) for s in STRENGTHS[::-1] for m in (STRENGTHS[::-1] if grid else (s,))]
    scores = _eces(z, labels, pairs) if select == "cal_ece" else _held_out_nlls(z, labels, pairs)
    best = min(pairs, key=lambda pair: scores[pair])
    found = fit_linear(z, labels, "matrix", penalty=odir(*best, k))
    return found, {"strength": best[0], "bias_strength": best[1], "score": scores[best]}


Pair = tuple[float, float]


def _held_out_nlls(z: Array, labels: Ints, pairs: list[Pair]) -> dict[Pair, float]:
    """Cross-validated NLL of each pair; a fit starts where the one before it, a little stronger, ended."""
    k, folds = z.shape[1], min(FOLDS, len(labels))
    if folds < 2:  # one row can teach nothing: the strongest penalty
        return dict.fromkeys(pairs, float("nan"))
    fold = deal_folds(Predictions(z, labels, "logits"), folds)
    totals = dict.fromkeys(pairs, 0.0)
    for f in range(folds):
        inside, found = fold == f, None
        for pair in pairs:
            found = fit_linear(z[~inside], labels[~inside], "matrix", penalty=odir(*pair, k), begin=found, polish=False)
            totals[pair] -= float(_applied(found, z[inside], labels[inside]).true_log_prob.sum())
    return {pair: total / len(labels) for pair, total in totals.items()}


def _eces(z: Array, labels: Ints, pairs: list[Pair]) -> dict[Pair, float]:
    """The ECE of each pair on the rows it was fitted on: what the paper says literally."""
    scores: dict[Pair, float] = {}
    found = None
    for pair in pairs:
        found = fit_linear(z, labels, "matrix", penalty=odir(*pair, z.shape[1]), begin=found)
        p = _applied(found, z, labels)
        bins = p.top_label.bins(15)
        scores[pair] = float(np.abs(bins.score_sum - bins.hit_sum).sum() / p.n)
    return scores


def _applied(found: LinearFit, z: Array, labels: Ints) -> Predictions:
    return Predictions(z @ found.weight.T + found.bias, labels, "logits")
