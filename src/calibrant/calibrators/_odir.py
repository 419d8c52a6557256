"""Off-diagonal and intercept regularisation, with its strength chosen by cross-validation."""

from typing import Any, Literal

import numpy as np

from calibrant.calibrators._linear import LinearFit, fit_linear
from calibrant.calibrators._scaling import Ridge
from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.binning import Binning
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import RowData
from calibrant.core.statistics.cross_fit import folds_by_confidence

STRENGTHS = (1e-2, 1e-1, 1.0, 10.0, 1e2, 1e3, 1e4)
FOLDS = 5

Select = Literal["cross_validation", "cal_ece"]


def odir(strength: float, bias_strength: float, k: int) -> Ridge:
    """The penalty lambda / (k (k - 1)) sum of squares off the diagonal + mu / k sum of squared biases."""
    return Ridge(0.0, strength / (k * (k - 1)), bias_strength / k)


def fit_odir(p: Predictions, select: Select, grid: bool) -> tuple[LinearFit, dict[str, Any]]:
    """The best of seven strengths (or of all 49 pairs) for these logits, refitted on all rows."""
    k, z = p.k, p.logits.astype(np.float64)
    pairs = [(s, m) for s in STRENGTHS[::-1] for m in (STRENGTHS[::-1] if grid else (s,))]
    scores = _eces(p, z, pairs) if select == "cal_ece" else _held_out_nlls(p, z, pairs)
    best = min(pairs, key=lambda pair: scores[pair])
    linear = fit_linear(z, p.labels, "matrix", penalty=odir(*best, k), rows_weigh=p.weights)
    chosen = {"strength": best[0], "bias_strength": best[1]}
    return linear, chosen | ({"score": scores[best]} if np.isfinite(scores[best]) else {})  # of one row there is none


Pair = tuple[float, float]


def _held_out_nlls(p: Predictions, z: Array, pairs: list[Pair]) -> dict[Pair, float]:
    """Cross-validated NLL of each pair; a fit starts where the one before it, a little stronger, ended."""
    folds = min(FOLDS, p.n if p.clusters is None else int(p.clusters.max()) + 1)
    if folds < 2:  # one row can teach nothing: the strongest penalty
        return dict.fromkeys(pairs, float("nan"))
    fold, weigh = folds_by_confidence(p, folds), np.ones(p.n) if p.weights is None else p.weights
    totals = dict.fromkeys(pairs, 0.0)
    for f in range(folds):
        inside, outside, linear = fold == f, fold != f, None
        few = None if p.weights is None else p.weights[outside]
        for pair in pairs:
            ridge = odir(*pair, p.k)
            linear = fit_linear(
                z[outside], p.labels[outside], "matrix", penalty=ridge, begin=linear, polish=False, rows_weigh=few
            )
            totals[pair] -= float(weigh[inside] @ _apply(linear, z[inside], p.labels[inside]).true_log_prob)
    return {pair: total / weigh.sum() for pair, total in totals.items()}


def _eces(p: Predictions, z: Array, pairs: list[Pair]) -> dict[Pair, float]:
    """The ECE of each pair on the rows it was fitted on: what the paper says literally."""
    scores: dict[Pair, float] = {}
    linear = None
    for pair in pairs:
        ridge = odir(*pair, p.k)
        linear = fit_linear(z, p.labels, "matrix", penalty=ridge, begin=linear, rows_weigh=p.weights)
        scores[pair] = _apply(linear, z, p.labels, p.row_data).top_label.bins(Binning(15)).ece
    return scores


def _apply(linear: LinearFit, z: Array, labels: Ints, row_data: RowData | None = None) -> Predictions:
    return Predictions._from_valid(z @ linear.weight.T + linear.bias, labels, "logits", row_data)
