"""Measures of a stream: those that can be read from sums, and those of a stream for which none were named."""

from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.measures import CATALOGUE
from calibrant.streaming.measure_sums import MeasureSums, sums_of

STREAMED = (
    "accuracy",
    "nll",
    "brier",
    "gap",
    "ece",
    "classwise",
    "mce",
    "rmsce",
    "reliability",
    "resolution",
    "auroc_correct",
    "aurc",
)
OF_PREDICTIONS = ("auroc_correct", "aurc")  # of binary scores roc_auc is what people ask for


def streamable(spec: str) -> MeasureSums[Any]:
    """The sums of a measure, or an InputError where it cannot be streamed."""
    sums = sums_of(CATALOGUE.make(spec), spec)
    if sums is None:
        raise InputError(
            f"stream of {spec}",
            expected="a mean over rows or equal-width bins",
            got="a measure that needs all rows at once",
            fix=f"use for instance {', '.join((*STREAMED, 'roc_auc'))}, or measure without a stream",
        )
    return sums


def usual(task: Task | None) -> tuple[str, ...]:
    """The measures of a stream for which none were named, by the task of its predictions.

    >>> usual("binary")[-2:], usual("confidence")[-2:]
    (('resolution', 'roc_auc'), ('auroc_correct', 'aurc'))
    """
    named = (*(spec for spec in STREAMED if spec not in OF_PREDICTIONS), "roc_auc") if task == "binary" else STREAMED
    return tuple(spec for spec in named if task is None or task in CATALOGUE.make(spec).tasks)


def raw_weights(p: Predictions) -> Array | None:
    """The weights as they were given, so that batches have the same unit; None where each row counts once."""
    if p.weights is None:
        return None if p.row_data.unit == 1 else np.full(p.n, p.row_data.unit)
    return np.asarray(p.weights * p.row_data.unit)


def example(task: Task | None) -> Predictions:
    """One prediction of this task, from which definitions of measures are written."""
    if task == "binary":
        return Predictions.binary([0.5], [1])
    if task == "confidence":
        return Predictions.from_confidence([0.5], [1])
    if task == "choice":
        return Predictions.from_logits([[0.0, 0.0, 0.0]], [0], mask=[[True, True, False]])
    return Predictions.from_logits([[0.0, 0.0]], [0])
