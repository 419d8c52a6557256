"""Measures that can be read from sums, the names of those sums, and how large they are."""

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.measures import (
    CATALOGUE,
    BinnedMeasure,
    BinOptions,
    ClassMeasure,
    CurveMeasure,
    Measure,
    PositiveMeasure,
    RatioMeasure,
)
from calibrant.streaming.histogram_ranking import is_ranking
from calibrant.streaming.state import RANKING
from calibrant.streaming.sums import FINE, SUMS

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
TOP = "top label"
POSITIVE = f"{RANKING}, positive class"
HISTOGRAM = 100  # equal-width bins of the confidence histograms


def streamable(spec: str) -> Measure:
    m = CATALOGUE.make(spec)
    if m.streamed_from == "no":
        raise InputError(
            f"stream of {spec}",
            expected="a mean over rows or equal-width bins",
            got="a measure that needs all rows at once",
            fix=f"use for instance {', '.join((*STREAMED, 'roc_auc'))}, or measure without a stream",
        )
    return m


def usual(task: Task | None) -> tuple[str, ...]:
    """The measures of a stream for which none were named, by the task of its predictions.

    >>> usual("binary")[-2:], usual("confidence")[-2:]
    (('resolution', 'roc_auc'), ('auroc_correct', 'aurc'))
    """
    named = (*(spec for spec in STREAMED if spec not in OF_PREDICTIONS), "roc_auc") if task == "binary" else STREAMED
    return tuple(spec for spec in named if task is None or task in CATALOGUE.make(spec).tasks)


def state_name(m: Measure, spec: str) -> str:
    if isinstance(m, ClassMeasure):
        return f"classes, {m.bins} bins, {m.closed}"
    if isinstance(m, BinnedMeasure):
        return f"{TOP if m.scope == 'top' else 'score'}, {m.bins} bins, {m.closed}"
    if isinstance(m, PositiveMeasure):
        return POSITIVE
    if is_ranking(m):
        return f"{RANKING}, {TOP}" if isinstance(m, CurveMeasure) and m.scope == "top" else RANKING
    return spec


def sums_shape(m: Measure | None, k: int) -> tuple[int, ...]:
    """Of the sums of a measure; None is the histogram."""
    if m is None:
        return (SUMS, HISTOGRAM)
    if isinstance(m, BinOptions):
        return (SUMS, k, m.bins) if isinstance(m, ClassMeasure) else (SUMS, m.bins)
    if is_ranking(m):
        return (4, FINE)
    return (5,) if isinstance(m, RatioMeasure) else (3,)


def raw_weights(p: Predictions) -> Array | None:
    """As they were given, so that batches have the same unit; None where each row counts once."""
    if p.weights is None:
        return None if p.row_data.unit == 1 else np.full(p.n, p.row_data.unit)
    return np.asarray(p.weights * p.row_data.unit)


def example(task: Task | None) -> Predictions:
    """One prediction of this task, from which definitions of measures are written."""
    if task == "binary":
        return Predictions.binary([0.5], [1], allow_few_rows=True)
    if task == "confidence":
        return Predictions.from_confidence([0.5], [1], allow_few_rows=True)
    if task == "choice":
        return Predictions.from_logits([[0.0, 0.0, 0.0]], [0], mask=[[True, True, False]], allow_few_rows=True)
    return Predictions.from_logits([[0.0, 0.0]], [0], allow_few_rows=True)
