"""Match the rows of two models, so that they can be compared row by row."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.text.vocabulary import describe_task
from calibrant.measures import check_predictions

MatchedBy = Literal["ids", "order"]


@dataclass(frozen=True)
class MatchedRows:
    """Two models on the same rows in the same order, and how many rows only one of them had."""

    a: Predictions
    b: Predictions
    only_in_a: int = 0
    only_in_b: int = 0
    by: MatchedBy = "order"


def match_rows(a: Predictions, b: Predictions) -> MatchedRows:
    """Join two models by their ids; rows that one of them lacks are left out and counted.

    Without ids, both must have the same rows in the same order. Labels must agree, except where a label only says
    whether the model's own answer was correct.

    >>> a = Predictions.from_confidence([0.9, 0.6], correct=[1, 0], ids=["x", "y"])
    >>> b = Predictions.from_confidence([0.7, 0.8, 0.9], correct=[1, 1, 1], ids=["y", "z", "x"])
    >>> rows = match_rows(a, b)
    >>> rows.b.confidence.tolist(), rows.only_in_a, rows.only_in_b
    ([0.9, 0.7], 0, 1)
    """
    same_classes(a, b)
    matched = MatchedRows(a, b)
    if a.ids is not None and b.ids is not None:
        rows_a, rows_b = _rows_with_common_ids(a.ids, b.ids)
        matched = MatchedRows(_take(a, rows_a), _take(b, rows_b), a.n - len(rows_a), b.n - len(rows_b), by="ids")
    _check_same(matched.a, matched.b)
    return matched


def same_classes(a: Predictions, b: Predictions) -> None:
    """Refuse predictions of different tasks or of different classes."""
    check_predictions(a)
    check_predictions(b)
    if a.task != b.task:
        got = f"{describe_task(a.task)} and {describe_task(b.task)}"
        raise InputError("compare", expected="predictions of one task", got=got, fix="read both in the same way")
    if a.k != b.k and a.task != "choice":
        fix = "compare predictions about the same classes"
        raise InputError("compare", expected="the same classes in both", got=f"{a.k} and {b.k} classes", fix=fix)


def _rows_with_common_ids(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """The rows of each that have an id of the other, in the order of a."""
    order_a, order_b = np.argsort(a, kind="stable"), np.argsort(b, kind="stable")
    if np.array_equal(a[order_a], b[order_b]):
        rows_b = np.empty(len(a), dtype=np.int64)
        rows_b[order_a] = order_b
        return np.arange(len(a)), rows_b
    for ids in (a[order_a], b[order_b]):
        if (ids[1:] == ids[:-1]).any():
            raise InputError("ids", expected="each id once", got="an id twice", fix="give every row an id of its own")
    _, rows_a, rows_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    if not len(rows_a):
        fix = "predict the same rows, or compare different rows with paired=False (--unpaired)"
        raise InputError("ids", expected="some that are in both", got="none", fix=fix)
    order = np.argsort(rows_a)
    return rows_a[order], rows_b[order]


def _take(p: Predictions, rows: Ints) -> Predictions:
    return p if np.array_equal(rows, np.arange(p.n)) else p.take(rows)


def _check_same(a: Predictions, b: Predictions) -> None:
    if a.n != b.n or a.k != b.k:
        raise InputError(
            "compare",
            expected="the same rows and classes in both",
            got=f"{a.n} x {a.k} and {b.n} x {b.k}",
            fix="predict the same data set with both models, give ids to join them by, or compare different rows with "
            "paired=False (--unpaired)",
        )
    different = np.flatnonzero(a.labels != b.labels)
    if len(different) and a.task != "confidence":
        raise InputError(
            "labels",
            expected="the same in both, row by row",
            got=f"{len(different)} different ones, the first in row {different[0]}",
            fix="write both files in the same order, or give ids",
        )
