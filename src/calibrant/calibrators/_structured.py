"""Structured scaling: temperature, a little of the uniform distribution, then a linear map with a ridge."""

from typing import Literal

import numpy as np

from calibrant.calibrators._base import Calibrator, build_scaling
from calibrant.calibrators._linear import fit_linear
from calibrant.calibrators._scaling import Ridge
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear, LogProbs, Mix, Step
from calibrant.core.parallel import pieces, run_pieces
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import CHUNK_ELEMENTS
from calibrant.core.statistics.temperature import find_temperature


def fit_structured(calibrator: Calibrator, p: Predictions, shape: Literal["vector", "matrix"], ridge: Ridge) -> Map:
    """The map of a structured scaling, for instance `svs`, with its ridge."""
    steps, T, q = _fit_smoothed_temperature(p)
    linear = fit_linear(q.logits, p.labels, shape, penalty=ridge, rows_weigh=p.weights)
    last = Linear(linear.weight, linear.bias)
    return calibrator.build_map(p, *steps, last, fit=linear.fit, T=T, objective=linear.objective)


def _fit_smoothed_temperature(p: Predictions) -> tuple[tuple[Step, ...], float, Predictions]:
    """The steps, the temperature, and the log-probabilities they give: those that structured scaling acts on."""
    T = find_temperature(p).T
    share = 1 / (p.n_effective + 1)
    steps = (build_scaling(T), Mix(1.0, np.array([0.0, 1 - share, share])), LogProbs())
    logs = np.empty((p.n, p.k))

    def work(rows: slice) -> None:  # one array of results, whatever the steps need inside
        q = Predictions._from_valid(p.values[rows], p.labels[rows], p.score_type)
        for step in steps:
            q = step(q)
        logs[rows] = q.logits

    run_pieces(work, pieces(p.n, max(1, CHUNK_ELEMENTS // p.k)), p.values.size)
    return steps, T, Predictions._from_valid(logs, p.labels, "logits")
