"""Which measures can be read from sums, what those sums are called, and how large they are."""

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.extras import Shape
from calibrant.core.predictions import Predictions
from calibrant.measures import CATALOGUE, Binned, BinnedMeasure, ClassMeasure, CurveMeasure, Measure, RowMeasure
from calibrant.measures.aurc import AURC
from calibrant.measures.auroc_correct import AUROCCorrect
from calibrant.measures.classwise import Classwise
from calibrant.measures.eaurc import EAURC
from calibrant.measures.refinement import Refinement
from calibrant.measures.roc_auc import ROCAUC
from calibrant.measures.uncertainty import Uncertainty
from calibrant.measuring.state import RANKING
from calibrant.measuring.sums import FINE, SUMS

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
RANKINGS = (AUROCCorrect, AURC, EAURC, ROCAUC)  # read from a fine histogram
TOP = "top label"
POSITIVE = f"{RANKING}, positive class"
HISTOGRAM = 100  # equal-width bins of the confidence histograms


def streamable(spec: str) -> Measure:
    m = CATALOGUE.make(spec)
    fixed_bins = isinstance(m, Binned) and m.scheme == "width" and getattr(m, "dialect", None) is None
    if isinstance(m, ClassMeasure):
        ok = fixed_bins and isinstance(m, Classwise)
    elif isinstance(m, Binned):
        ok = fixed_bins
    else:
        ok = isinstance(m, RANKINGS) or (isinstance(m, RowMeasure) and not isinstance(m, Refinement))
    if not ok or isinstance(m, Uncertainty):
        raise InputError(
            f"stream of {spec}",
            expected="a mean over rows or equal-width bins",
            got="a measure that needs all rows at once",
            fix=f"use for instance {', '.join((*STREAMED, 'roc_auc'))}, or measure without a stream",
        )
    return m


def usual(shape: Shape | None) -> tuple[str, ...]:
    """The measures of a stream that nobody named any for, by the shape of its predictions.

    >>> usual("binary")[-2:], usual("confidence")[-2:]
    (('resolution', 'roc_auc'), ('auroc_correct', 'aurc'))
    """
    named = (*(spec for spec in STREAMED if spec not in OF_PREDICTIONS), "roc_auc") if shape == "binary" else STREAMED
    return tuple(spec for spec in named if shape is None or shape in CATALOGUE.make(spec).shapes)


def state_name(m: Measure, spec: str) -> str:
    if isinstance(m, ClassMeasure):
        return f"classes, {m.bins} bins, {m.closed}"
    if isinstance(m, BinnedMeasure):
        return f"{TOP if m.scope == 'top' else 'score'}, {m.bins} bins, {m.closed}"
    if isinstance(m, ROCAUC):
        return POSITIVE
    if isinstance(m, RANKINGS):
        return f"{RANKING}, {TOP}" if isinstance(m, CurveMeasure) and m.scope == "top" else RANKING
    return spec


def sums_shape(m: Measure | None, k: int) -> tuple[int, ...]:
    """Of the sums of a measure; None is the histogram."""
    if m is None:
        return (SUMS, HISTOGRAM)
    if isinstance(m, Binned):
        return (SUMS, k, m.bins) if isinstance(m, ClassMeasure) else (SUMS, m.bins)
    return (4, FINE) if isinstance(m, RANKINGS) else (3,)


def given_weights(p: Predictions) -> Array | None:
    """As they were given, so that batches have the same unit; None where each row counts once."""
    if p.weights is None:
        return None if p.extras.unit == 1 else np.full(p.n, p.extras.unit)
    return np.asarray(p.weights * p.extras.unit)


def example(shape: Shape | None) -> Predictions:
    """Predictions of this shape, for definitions to speak of."""
    if shape == "binary":
        return Predictions.binary([0.5], [1])
    if shape == "confidence":
        return Predictions.from_confidence([0.5], [1])
    if shape == "choices":
        return Predictions.from_logits([[0.0, 0.0, 0.0]], [0], mask=[[True, True, False]], few_rows=True)
    return Predictions.from_logits([[0.0, 0.0]], [0], few_rows=True)
