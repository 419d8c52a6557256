"""Sorted curves of predictions: of their event, of the top label and of every class."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves import native
from calibrant.core.curves.binning import Closed
from calibrant.core.curves.class_curves import ClassCurves
from calibrant.core.curves.curve import Bins, Curve, Outcomes, pair_up
from calibrant.core.curves.keys import keys_of, log_odds_of_classes
from calibrant.core.curves.softmax import curves_of
from calibrant.core.curves.softmax import width_bins as bin_classes
from calibrant.core.curves.weighted import WeightedCurves, sort_curve
from calibrant.core.parallel import pieces
from calibrant.core.predictions import constants
from calibrant.core.predictions.views import probabilities

if TYPE_CHECKING:
    from calibrant.core.predictions.predictions import Predictions


def curve(p: "Predictions") -> Curve:
    """Score against outcome, sorted once: the input of binned, kernel and ranking measures."""
    return _sort(p, lambda q: (q.score, q.outcome)) if p.task == "binary" else p.top_label


def top_label(p: "Predictions") -> Curve:
    """Confidence against correctness, sorted once."""
    return _sort(p, lambda q: (q.confidence, q.correct))


def ranking(p: "Predictions") -> Curve:
    """As `curve`, with rows told apart by their logits where these are given: the input of measures of ranking."""
    if p.task != "binary":
        return p.top_ranking
    return _sort(p, lambda q: (q.score_keys, q.outcome)).read_keys() if p.score_type == "logits" else p.curve


def top_ranking(p: "Predictions") -> Curve:
    """As `top_label`, with rows told apart by their logits where these are given."""
    if p.score_type != "logits":
        return p.top_label
    return _sort(p, lambda q: (q.confidence_keys, q.correct)).read_keys()


def score_keys(p: "Predictions") -> Array:
    """What orders rows by `score`: keys of logits, or the scores themselves (core/curves/keys.py)."""
    return _keys(p, p.score, np.ones(p.n, dtype=np.int64)) if p.task == "binary" else p.confidence_keys


def confidence_keys(p: "Predictions") -> Array:
    """What orders rows by `confidence`."""
    return _keys(p, p.confidence, p.predicted)


def _keys(p: "Predictions", scores: Array, classes: Ints) -> Array:
    if p.score_type != "logits":
        return scores
    return keys_of(scores, lambda rows: log_odds_of_classes(p.values, classes, rows))


def _sort(p: "Predictions", pairs: Callable[["Predictions"], tuple[Array, Outcomes]]) -> Curve:
    if not p.is_long or p.weights is not None:
        return sort_curve(*pairs(p), p.weights)
    rows = p.slice_rows(slice(None))  # which keeps nothing of what is computed here
    return Curve.sort_pairs(lambda: rows.map_chunks(lambda q: pair_up(*pairs(q)), np.uint64))


def class_curves(p: "Predictions") -> Iterator[ClassCurves | WeightedCurves]:
    """Curves of each class, its probability against its presence, in blocks of at most KEEP_ELEMENTS."""
    block = max(1, constants.KEEP_ELEMENTS // p.n)
    if p.weights is not None:
        for classes in pieces(p.k, block):
            yield WeightedCurves.of(probabilities.block(p, slice(None), classes), p.labels, classes, p.weights)
        return
    compiled = p.score_type == "logits" and native.is_available()
    _ = p.softmax_stats if compiled else p.probs if p.is_small else None  # kept before several threads read it

    def columns_into(classes: slice, columns: Array) -> None:
        """Fill the columns with probabilities of some classes, (classes, n)."""
        if compiled:
            native.prob_columns(p.values[:, classes], p.softmax_stats.largest, p.softmax_stats.total, columns)
        else:
            columns[:] = probabilities.block(p, slice(None), classes).T

    yield from curves_of(p.labels, p.k, columns_into, block, max(1, 4 * constants.CHUNK_ELEMENTS // p.n))


def width_bins(p: "Predictions", count: int, closed: Closed) -> Bins | None:
    """Equal-width bins of every class without a sort, (k, count); None where sorted curves are needed."""
    if p.weights is not None:
        return None
    if not p.one_score:
        stats = p.softmax_stats if p.score_type == "logits" else None
        return bin_classes(p.values, stats, p.labels, count, closed)
    sums: Bins | None = None
    for rows in pieces(p.n, constants.KEEP_ELEMENTS):  # both columns of some rows at a time
        values, labels = p.block(rows)
        bins = bin_classes(values, None, labels, count, closed)
        if bins is None:
            return None
        sums = bins if sums is None else sums + bins
    return sums
