"""The curves of single classes: which classes are worst, and their bins."""

from collections.abc import Mapping

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.binning import Binning, Scheme
from calibrant.core.curves.curve import Bins, Curve
from calibrant.core.curves.weighted import WeightedCurve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions


def class_bins(p: Predictions, count: int, scheme: Scheme) -> Bins:
    """Bins of every class's own probability, (k, bins)."""
    blocks = [curves.bins(Binning(count, scheme)) for curves in p.class_curves()]
    counts, scores, positives = (
        np.concatenate([getattr(block, name) for block in blocks]) for name in ("count", "score_sum", "outcome_sum")
    )
    return Bins(counts, scores, positives, p.curve.total, p.curve.weight_unit)


def class_curve(p: Predictions, c: int) -> Curve:
    """The curve of the probability of one class against being of it."""
    order = np.argsort(p.probs[:, c], kind="stable")
    sorted_rows = p.probs[order, c].astype(np.float64), (p.labels[order] == c).astype(np.float64), order
    return Curve(*sorted_rows) if p.weights is None else WeightedCurve(*sorted_rows, p.weights[order])


def class_errors(bins: Bins) -> Array:
    """The calibration error of each class, (k,)."""
    return np.asarray((bins.share * np.abs(bins.gap)).sum(axis=1))


def worst(models: Mapping[str, Bins], classes: int) -> list[int]:
    """The classes with the largest error in any of the models, the worst first."""
    sizes = {name: len(bins.count) for name, bins in models.items()}
    if len(set(sizes.values())) > 1:
        got = ", ".join(f"{name} {k}" for name, k in sizes.items())
        raise InputError("models", expected="the same number of classes", got=got, fix="draw them one by one")
    error = np.max([class_errors(bins) for bins in models.values()], axis=0)
    return [int(c) for c in np.argsort(-error, kind="stable")[:classes]]
