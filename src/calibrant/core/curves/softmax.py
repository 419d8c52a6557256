"""Softmax of many rows: one pass over them, probabilities by blocks, sorted class columns."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints, lock
from calibrant.core.curves import native
from calibrant.core.curves.binning import Closed, equal_width_edges
from calibrant.core.curves.class_curves import ClassCurves
from calibrant.core.curves.curve import Bins
from calibrant.core.curves.native import SoftmaxStats
from calibrant.core.parallel import pieces, run_pieces, threads_worth

MOST_TABLES = 1 << 20  # bins x classes up to which each thread counts in a table of its own
SMALLEST = 1e-290  # a sum of probabilities below which nothing is divided by it


class Scan(NamedTuple):
    """Results of one compiled pass over logits: each row, and what there is to check."""

    top: SoftmaxStats
    finite: bool  # whether all numbers are
    known: bool  # whether all labels are classes; true without labels
    low: float
    high: float


def softmax_stats(
    values: Floats, are_logits: bool, chosen: Ints | None, chunk: int, labels: npt.NDArray[Any] | None = None
) -> SoftmaxStats:
    """One pass over the rows, `chunk` at a time; `chosen` are predictions that are not the class of the largest score.

    Labels are for the compiled pass, which looks up their log-probability.
    """
    if are_logits and native.is_available():
        return scan_logits(values, labels, chosen).top
    n = len(values)
    confidence, predicted = np.empty(n), np.empty(n, dtype=np.int64)
    largest, total = np.empty(n), np.ones(n)

    def work(rows: slice) -> None:
        block = values[rows]
        top = block.argmax(axis=1)
        most = block[np.arange(len(top)), top]
        largest[rows] = most
        if chosen is not None:
            top = chosen[rows]
        predicted[rows] = top
        if not are_logits:
            confidence[rows] = most if chosen is None else block[np.arange(len(top)), top]
            return
        with np.errstate(over="ignore"):  # logits of 1e308: a difference of -inf is a probability of 0
            e = np.subtract(block, most[:, None], dtype=np.float64)
        np.exp(e, out=e).sum(axis=1, out=total[rows])
        of_top = 1.0 if chosen is None else e[np.arange(len(top)), top]
        np.divide(of_top, total[rows], out=confidence[rows])

    run_pieces(work, pieces(n, chunk), values.size)
    lock(confidence, predicted)
    return SoftmaxStats(confidence, predicted, largest, total)


def scan_logits(values: Floats, labels: npt.NDArray[Any] | None = None, chosen: Ints | None = None) -> Scan:
    """The compiled pass, which also says whether the logits are valid, and the labels where they are whole numbers."""
    whole = labels is not None and labels.dtype.kind in "iub"
    given = np.ascontiguousarray(labels, dtype=np.int64) if whole else None
    columns, taken = np.empty((7 if whole else 5, len(values))), np.zeros(1, dtype=np.int64)
    results: list[tuple[bool, bool, float, float]] = []

    def work(_: slice) -> None:
        results.append(native.softmax_rows(values, given, chosen, columns, taken))

    run_pieces(work, [slice(0, len(values))] * threads_worth(values.size), values.size)
    lock(columns)
    confidence, predicted, *others = columns
    finite, known, lows, highs = zip(*results, strict=True)
    stats = SoftmaxStats(confidence, predicted.view(np.int64), *others)
    return Scan(stats, all(finite), all(known), min(lows), max(highs))


def softmax_of(logits: Floats, largest: Array, total: Array) -> Array:
    """Probabilities of a block of logits, by what the pass over its rows has found."""
    if native.is_available():
        return native.probs_of(logits, largest, total)
    with np.errstate(over="ignore"):
        block = np.subtract(logits, largest[:, None], dtype=np.float64)
    np.exp(block, out=block)
    block /= total[:, None]
    return np.asarray(block, dtype=np.float64)


def entropy_of(probs: Array) -> Array:
    """Entropy of each row of probabilities in nats, (n,)."""
    logs = np.log(probs, out=np.zeros_like(probs), where=probs > 0)
    return np.asarray(-np.einsum("ik,ik->i", probs, logs))


def set_top_probability_(
    shares: Array, predicted: Ints, q: Array, exists: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None" = None
) -> None:
    """Give these probabilities q for the class predicted, in place: the other classes are rescaled to share the rest.

    `exists` says which options a row has, where rows differ in that.
    """
    n, k = shares.shape
    rows = np.arange(n)
    shares[rows, predicted] = 0.0
    rest = shares.sum(axis=1)  # and not 1 - confidence, which keeps no digits when the confidence is nearly 1
    tiny = (rest > 0) & (rest < SMALLEST)  # dividing by it would overflow
    shares[tiny] /= rest[tiny, None]
    rest[tiny] = 1.0
    shares *= np.divide(1 - q, rest, out=np.zeros_like(rest), where=rest > 0)[:, None]
    spread = rest <= 0  # nothing to rescale: the others share alike
    if exists is None:
        shares[spread] = ((1 - q[spread]) / (k - 1))[:, None]
    else:
        there = exists[spread]
        shares[spread] = there * ((1 - q[spread]) / (there.sum(axis=1) - 1))[:, None]
    shares[rows, predicted] = q


def width_bins(values: Floats, top: SoftmaxStats | None, labels: Ints, count: int, closed: Closed) -> Bins | None:
    """Equal-width bins of every class (k, count), without a sort; None where numpy has to sort.

    `top` is that of logits; values are probabilities without it.
    """
    n, k = values.shape
    if not native.is_available() or count * k > MOST_TABLES:
        return None
    edges, parts = equal_width_edges(count), native.shares(values)
    sums: list[tuple[Array, Array, Array]] = [(edges, edges, edges)] * len(parts)

    def work(rows: slice) -> None:
        softmax = None if top is None else (top.largest[rows], top.total[rows])
        sums[parts.index(rows)] = native.class_bins(values[rows], softmax, labels[rows], edges, closed == "right")

    run_pieces(work, parts, values.size)
    counts, scores, positives = (np.sum(of, axis=0) for of in zip(*sums, strict=True))
    return Bins(counts, scores, positives, n)


def curves_of(
    labels: Ints, k: int, columns_into: Callable[[slice, Array], None], classes: int, columns_at_once: int
) -> Iterator[ClassCurves]:
    """Sorted class columns in blocks of so many `classes`; two threads sort the halves of a block.

    `columns_into` writes the probabilities of some classes into columns (classes, n).
    """
    n = len(labels)
    by_class = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_class], np.arange(k + 1))
    for block in pieces(k, classes):
        columns = np.empty((block.stop - block.start, n))  # (b, n)
        positives: list[Array] = [columns[0]] * len(columns)

        def work(
            part: slice,
            block: slice = block,
            columns: Array = columns,
            positives: list[Array] = positives,
        ) -> None:
            first = block.start
            columns_into(slice(first + part.start, first + part.stop), columns[part])
            for row in range(part.start, part.stop):
                members = by_class[starts[first + row] : starts[first + row + 1]]
                positives[row] = np.sort(columns[row, members])
            columns[part].sort(axis=1)

        run_pieces(work, pieces(len(columns), columns_at_once), columns.size)
        yield ClassCurves(columns, positives)
