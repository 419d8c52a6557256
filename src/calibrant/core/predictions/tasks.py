"""Valid arrays for each of the four tasks, from what users and files give."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Integers, Ints
from calibrant.core.curves import native
from calibrant.core.curves.curve import LONG
from calibrant.core.curves.native import Top
from calibrant.core.curves.softmax import Scan, scan_logits
from calibrant.core.errors import InputError, ProbabilitiesAsLogitsWarning, unknown_name
from calibrant.core.io.missing import MissingCount, MissingPolicy, apply_policy, check_policy
from calibrant.core.io.score_table import ScoreTable
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.predictions.logit_range import FARTHEST, clip_logits, without_absent
from calibrant.core.predictions.row_data import RowData, Rows, ScoreType, map_rows
from calibrant.core.predictions.validation import (
    check_labels,
    check_logits,
    check_no_gaps,
    check_probs,
    check_row_data,
    check_row_number,
    check_scores,
    check_seen,
    look_like_probabilities,
    to_numpy,
)

FEWEST_SCANNED = 8  # classes from which on what the pass finds of a row is small beside the row

Ignore = int | Sequence[int]
Values = npt.NDArray[Any]


class PredictionArrays(NamedTuple):
    """Valid arrays, in the order in which `Predictions` takes them."""

    values: Floats
    labels: Integers | npt.NDArray[np.bool_] | None
    score_type: ScoreType
    row_data: RowData
    top: Top | None = None


def from_scores(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike | None,
    score_type: ScoreType,
    *,
    rows: Rows,
    mask: npt.ArrayLike | None = None,
    axis: int | None = None,
    ignore: Ignore = (),
    classes: Sequence[str] | None = None,
    allow_few_rows: bool = False,
    rows_known: bool = False,
) -> PredictionArrays:
    """Logits or probabilities with their labels, as `Predictions.from_logits` takes them.

    `rows_known` says that the rows are certainly the first axis, so that fewer rows than classes are no mistake.
    """
    names = () if classes is None else _check_class_names(classes)
    values, truth = to_numpy(score_type, scores), None if labels is None else to_numpy("labels", labels)
    options, clusters_have_names = None if mask is None else to_numpy("mask", mask), rows.get("clusters") is not None
    if axis is not None or values.ndim > 2:
        values, truth, options, rows = _flatten(score_type, values, truth, options, rows, axis)
    if truth is not None and np.size(ignore):
        ignored = np.isin(truth, np.atleast_1d(np.asarray(ignore)))
        if ignored.any():
            options = options[~ignored] if options is not None and len(options) == len(ignored) else options
            values, truth, rows = _drop(values, truth, rows, ignored)
    if names:
        truth = None if truth is None else _number_labels(truth, names)
        if values.ndim == 2 and len(names) != values.shape[1]:
            got = f"{len(names)} names for {values.shape[1]} columns"
            raise InputError("classes", expected="one name for each column", got=got, fix="name them all, in order")
    check_row_number(score_type, values, classes=True, allow_few_rows=allow_few_rows or truth is None, known=rows_known)
    scan = _scan(score_type, values, truth, options)
    exists = None if scan is not None else _existing_options(score_type, values, options)
    if exists is not None:
        logits, valid = _check_choices(score_type, values, truth, exists)
        row_data = check_row_data(len(logits), rows, clusters_have_names=clusters_have_names)
        row_data = replace(row_data, task="choice", exists=exists, classes=names)
        return PredictionArrays(logits, valid, "logits", row_data)
    if scan is not None:
        checked: Floats = values.view()
    else:
        checked = check_logits(values) if score_type == "logits" else check_probs(values)
    small = scan is None or (scan.low >= 0 and scan.high <= 1)
    if score_type == "logits" and small and look_like_probabilities(checked):
        warnings.warn(
            "every row of these logits lies in [0, 1] and sums to one, as probabilities do: if they are probabilities, "
            "use from_probs (a column or array named probs)",
            ProbabilitiesAsLogitsWarning,
            stacklevel=4,
        )
    narrow = None
    if truth is not None:
        known = scan is not None and scan.top.true_log_prob is not None and scan.known
        narrow = _narrow(truth.astype(np.int64) if known else check_labels(truth, *checked.shape), checked.shape[1])
    row_data = check_row_data(len(checked), rows, clusters_have_names=clusters_have_names)
    if names:
        row_data = replace(row_data, classes=names)
    top = None if scan is None or len(checked) >= LONG else scan.top
    return PredictionArrays(checked, narrow, score_type, row_data, top)


def _narrow(labels: Ints, k: int) -> Integers:
    """Labels of very many rows in as few bytes as k classes need."""
    return labels if len(labels) < LONG else labels.astype(np.min_scalar_type(k - 1))


def _scan(score_type: ScoreType, values: Values, labels: Values | None, options: Values | None) -> Scan | None:
    """One compiled pass over plain logits that are valid; None where the separate checks have to look."""
    if not (score_type == "logits" and options is None and native.is_available()):
        return None
    if values.ndim != 2 or values.dtype not in (np.float32, np.float64) or values.shape[1] < 2:
        return None
    if not values.flags.c_contiguous or (len(values) >= LONG and values.shape[1] < FEWEST_SCANNED):
        return None
    fits = labels is not None and labels.shape == (len(values),) and len(values) < LONG  # else it is not kept
    scan = scan_logits(values, labels if fits else None)
    return scan if scan.finite and scan.low >= -FARTHEST and scan.high <= FARTHEST else None


def from_binary(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike | None,
    *,
    positive: Any,
    logits: bool,
    rows: Rows,
    missing: MissingPolicy = "error",
    allow_few_rows: bool = False,
) -> PredictionArrays:
    """P(positive) or its logit, and two kinds of labels, of any number of axes."""
    clusters_have_names = rows.get("clusters") is not None
    values, truth, rows, gaps = _one_score("score", scores, labels, rows, missing)
    s = check_scores("scores", values, logits=logits)
    check_row_number("scores", s, allow_few_rows=allow_few_rows or truth is None)
    y, names = (None, ()) if truth is None else _positive(truth, positive)
    row_data = check_row_data(len(s), rows, clusters_have_names=clusters_have_names)
    row_data = replace(row_data, task="binary", classes=names, missing=gaps)
    return _two_events(s, y, logits, row_data)


def from_confidence(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike | None,
    *,
    logits: bool,
    rows: Rows,
    missing: MissingPolicy = "error",
    allow_few_rows: bool = False,
) -> PredictionArrays:
    """A confidence and whether the prediction was right: the second column is the probability of being right."""
    noun, clusters_have_names = "logit of the confidence" if logits else "confidence", rows.get("clusters") is not None
    values, truth, rows, gaps = _one_score(noun, confidence, correct, rows, missing)
    c = check_scores("confidence", values, logits=logits)
    check_row_number("confidence", c, allow_few_rows=allow_few_rows or truth is None)
    y = None if truth is None else check_labels(truth, len(c), 2, "correct")
    row_data = check_row_data(len(c), rows, clusters_have_names=clusters_have_names)
    row_data = replace(row_data, task="confidence", missing=gaps)
    return _two_events(c, y, logits, row_data)


def from_table(table: ScoreTable, *, allow_few_rows: bool = False) -> PredictionArrays:
    """The scores of a file or frame; errors name it."""
    try:
        arrays = _from_table(table, allow_few_rows)
        row_data = replace(arrays.row_data, missing=table.missing, notes=table.notes)
        if table.predicted is not None and row_data.task != "confidence":
            k = 2 if arrays.values.ndim == 1 else arrays.values.shape[1]
            predicted = check_labels(table.predicted, len(arrays.values), k, "predicted")
            row_data = replace(row_data, predicted=predicted)
            arrays = arrays._replace(top=None)  # the confidence is that of this prediction
        if table.seen is not None:
            row_data = replace(row_data, seen=check_seen(table.seen))
        return arrays._replace(row_data=row_data)
    except InputError as error:
        raise InputError.inside(table.place, error) from None


def _from_table(table: ScoreTable, allow_few_rows: bool) -> PredictionArrays:
    rows: Rows = {
        "features": table.features,
        "ids": table.ids,
        "groups": table.groups,
        "weights": table.weights,
        "clusters": table.clusters,
    }
    if table.content in ("logits", "probs"):
        mask = np.ones(np.shape(table.scores), dtype=bool) if table.mask is None and table.all_options else table.mask
        return from_scores(
            table.scores,
            table.labels,
            "logits" if table.logits else "probs",
            rows=rows,
            mask=mask,
            classes=table.classes or None,
            allow_few_rows=allow_few_rows,
            rows_known=table.rows_known,
        )
    if table.content in ("confidence", "confidence_logit"):
        if table.positive is not None or table.classes:
            got = "a positive label" if table.positive is not None else "names of classes"
            fix = "leave them out: a confidence is right or wrong"
            raise InputError("confidence", expected="whether it was right, 0 or 1", got=got, fix=fix)
        return from_confidence(
            table.scores, table.labels, logits=table.logits, rows=rows, allow_few_rows=allow_few_rows
        )
    return _binary_table(table, rows, allow_few_rows)


def _binary_table(table: ScoreTable, rows: Rows, allow_few_rows: bool) -> PredictionArrays:
    """Binary predictions of a table; of two named classes the second is positive, unless another is named."""
    names, positive = table.classes, table.positive
    if names and len(names) != 2:
        got = f"{len(names)} names"
        raise InputError("classes", expected="two, the positive one last", got=got, fix="name both, or neither")
    if table.labels is not None:
        if positive is None and names and table.labels.dtype.kind in "USO":
            positive = names[1]
        positive = positive_like(positive, table.labels)
    arrays = from_binary(
        table.scores, table.labels, positive=positive, logits=table.logits, rows=rows, allow_few_rows=allow_few_rows
    )
    return arrays._replace(row_data=replace(arrays.row_data, classes=names)) if names else arrays


def positive_like(positive: Any, labels: Values) -> Any:
    """Convert the positive label to the type of the labels: on a command line everything is text.

    >>> positive_like("1", np.array([0, 1])), positive_like("true", np.array([True])), positive_like("a", np.array([2]))
    (1.0, True, 'a')
    """
    if not isinstance(positive, str) or labels.dtype.kind not in "iufb":
        return positive
    if labels.dtype.kind == "b":
        return {"true": True, "1": True, "false": False, "0": False}.get(positive.lower(), positive)
    try:
        return float(positive)
    except ValueError:
        return positive


def _one_score(
    noun: str, scores: npt.ArrayLike, labels: npt.ArrayLike | None, rows: Rows, policy: MissingPolicy
) -> tuple[Values, Values | None, Rows, MissingCount | None]:
    """Scores of any number of axes as (n,); rows without one (NaN or None) are treated as the policy says."""
    check_policy(policy)
    name = "scores" if noun == "score" else "confidence"
    values, truth = to_numpy(name, scores), None if labels is None else to_numpy("labels", labels)
    if values.dtype == object:
        values = np.array([np.nan if value is None else value for value in values.ravel()]).reshape(values.shape)
    if truth is not None and truth.shape != values.shape:
        fix = "give one label per score"
        if values.ndim == 2 and truth.ndim == 1:
            fix = "give one score per row, scores[:, 1] of two columns; for all classes use from_logits or from_probs"
        got = f"shape {truth.shape} for scores of shape {values.shape}"
        raise InputError("labels", expected="one label per score", got=got, fix=fix)
    if values.ndim > 1:
        rows = _flat_rows(rows, values.shape)
        values, truth = values.reshape(-1), None if truth is None else truth.reshape(-1)
    if values.dtype.kind != "f":
        return values, truth, rows, None
    gaps = np.isnan(values)
    missing = apply_policy(name, noun, int(gaps.sum()), len(gaps), policy)
    if missing is None:
        return values, truth, rows, None
    if policy == "drop":
        return *_drop(values, truth, rows, gaps), missing
    right = None if truth is None else np.where(gaps, truth.dtype.type(0), truth)
    return np.where(gaps, 0.0, values), right, rows, missing


def _two_events(s: Array, y: Ints | None, logits: bool, row_data: RowData) -> PredictionArrays:
    """Logits of both events, or one probability: the other follows from it."""
    if logits:
        return PredictionArrays(clip_logits(np.stack([np.zeros(len(s)), s], axis=1)), y, "logits", row_data)
    return PredictionArrays(s, None if y is None else y == 1, "probs", row_data)


def _positive(labels: Values, positive: Any) -> tuple[Ints, tuple[str, ...]]:
    """1 for the positive label, 0 for the other; and the names of the two, where they have any."""
    check_no_gaps("labels", labels)
    kinds, counts = np.unique(labels, return_counts=True)
    if len(kinds) > 2:
        examples = ", ".join(map(str, kinds[:4])) + (", ..." if len(kinds) > 4 else "")
        fix = "with more classes give their scores (n, k) to from_logits or from_probs"
        raise InputError("labels", expected="two different labels", got=f"{len(kinds)} ({examples})", fix=fix)
    if positive is None:
        if labels.dtype.kind not in "iubf" or not np.isin(kinds, (0, 1)).all():
            got = " and ".join(f"{kind} in {count:,} rows" for kind, count in zip(kinds, counts, strict=True))
            fix = f"say which is positive, the label whose probability the scores are: {_choices_of_positive(kinds)}"
            raise InputError("labels", expected="0 and 1", got=got, fix=fix)
        return labels.astype(np.int64), ()
    y = labels.astype(str) == str(positive) if labels.dtype.kind in "USO" else labels == positive
    if not np.any(y):
        got = f"{positive}, which no row has"
        fix = f"name one of the labels: {_choices_of_positive(kinds)}"
        raise InputError("positive", expected=" or ".join(map(str, kinds)), got=got, fix=fix)
    others = [str(label) for label in kinds if str(label) != str(positive)]
    names = (others[0] if others else f"not {positive}", str(positive)) if labels.dtype.kind in "USO" else ()
    return y.astype(np.int64), names


def _choices_of_positive(kinds: Values) -> str:
    """Both labels as values of `positive`, for an error: only the user knows which is right."""
    plain = [kind.item() if hasattr(kind, "item") else kind for kind in kinds]  # objects of a pandas column have none
    return " or ".join(f"positive={kind!r} (--positive {kind})" for kind in plain)


def _flatten(
    score_type: ScoreType,
    values: Values,
    labels: Values | None,
    mask: Values | None,
    rows: Rows,
    axis: int | None,
) -> tuple[Values, Values | None, Values | None, Rows]:
    """One row for each pixel or token; those of one item form a cluster unless the user gives clusters."""
    if axis is None or not -values.ndim <= axis < values.ndim or values.ndim < 2:
        expected = "axis: which axis of the array holds the classes"
        fix = "say axis=1 for (N, C, H, W), axis=-1 for (N, T, V)"
        raise InputError(score_type, expected=expected, got=f"shape {values.shape} and axis {axis}", fix=fix)
    classes_last = np.moveaxis(values, axis, -1)
    places, k = classes_last.shape[:-1], classes_last.shape[-1]
    if labels is not None and labels.shape != places:
        expected = f"shape {places}, that of {score_type} without the classes"
        raise InputError("labels", expected=expected, got=f"shape {labels.shape}", fix="give one label for each row")
    if mask is not None and mask.ndim == values.ndim:
        mask = np.moveaxis(mask, axis, -1).reshape(-1, k)
    return classes_last.reshape(-1, k), None if labels is None else labels.reshape(-1), mask, _flat_rows(rows, places)


def _flat_rows(rows: Rows, places: tuple[int, ...]) -> Rows:
    """Arrays with one entry per place (pixel, token) or per item, as one entry per row."""
    n = int(np.prod(places))

    def flat(name: str, argument: npt.ArrayLike) -> npt.ArrayLike:
        array = to_numpy(name, argument)
        if array.shape[: len(places)] == places:
            return array.reshape(n, *array.shape[len(places) :])
        if array.ndim == 1 and len(array) == places[0]:
            return np.repeat(array, n // places[0])
        return array  # the check of its length says what is wrong

    rows = map_rows(rows, flat)
    if "clusters" not in rows and len(places) > 1 and places[0] < n:
        rows["clusters"] = np.repeat(np.arange(places[0], dtype=np.int32), n // places[0])
    return rows


def _drop(
    values: Values, labels: Values | None, rows: Rows, dropped: npt.NDArray[np.bool_]
) -> tuple[Values, Values | None, Rows]:
    if dropped.all():
        raise InputError("labels", expected="rows that are not ignored", got="none", fix="check the labels to ignore")

    def keep(name: str, argument: npt.ArrayLike) -> npt.ArrayLike:
        array = to_numpy(name, argument)
        return array[~dropped] if array.ndim and len(array) == len(dropped) else array

    return values[~dropped], None if labels is None else labels[~dropped], map_rows(rows, keep)


def _check_class_names(classes: Sequence[str]) -> tuple[str, ...]:
    names = tuple(map(str, classes))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("classes", expected="names that differ", got=f"{twice} twice", fix="name each class once")
    return names


def _number_labels(labels: Values, names: tuple[str, ...]) -> Values:
    """Labels as numbers of their classes; labels that are numbers already stay."""
    if labels.dtype.kind not in "USO":
        return labels
    check_no_gaps("labels", labels)
    number = {name: i for i, name in enumerate(names)}
    text = labels.astype(str)
    for label in np.unique(text):
        if label not in number:
            raise unknown_name("labels", str(label), names)
    return np.array([number[label] for label in text], dtype=np.int64)


def _existing_options(score_type: ScoreType, values: Values, mask: Values | None) -> npt.NDArray[np.bool_] | None:
    """The options that each row has; None where all rows have all."""
    if values.ndim != 2:
        return None
    absent = None
    if score_type == "logits" and values.dtype.kind == "f" and values.size and values.min() == -np.inf:
        absent = values == -np.inf
    if mask is None:
        return None if absent is None else ~absent
    if mask.shape != values.shape or mask.dtype.kind not in "biu":
        got = f"shape {mask.shape} of type {mask.dtype}"
        raise InputError(
            "mask", expected=f"shape {values.shape}: True where an option exists", got=got, fix="give both"
        )
    present = mask.astype(bool)
    return present if absent is None else present & ~absent


def _check_choices(
    score_type: ScoreType, values: Values, labels: Values | None, exists: npt.NDArray[np.bool_]
) -> tuple[Floats, Ints | None]:
    """Logits of options, those that do not exist far below all others, and the numbers of the right options."""
    few = np.flatnonzero(exists.sum(axis=1) < 2)
    if len(few):
        left = int(exists[few[0]].sum())
        got = f"{'none' if left == 0 else 'only one'} in row {few[0]} ({len(few)} such rows)"
        raise InputError("mask", expected="at least two options in every row", got=got, fix="drop these questions")
    if score_type == "probs":
        off = np.flatnonzero((np.where(exists, 0.0, values) != 0).any(axis=1))
        if len(off):
            got = f"a probability in row {off[0]}"
            raise InputError("probs", expected="0 where an option does not exist", got=got, fix="correct the mask")
        logits: Floats = np.log(np.maximum(check_probs(values), PROBABILITY_FLOOR))
    else:
        lowest = np.where(exists, values, np.inf).min(axis=1, keepdims=True)
        logits = check_logits(np.where(exists, values, lowest))
    if labels is None:
        return without_absent(logits, exists), None
    valid = check_labels(labels, *logits.shape)
    wrong = np.flatnonzero(~exists[np.arange(len(valid)), valid])
    if len(wrong):
        got = f"option {valid[wrong[0]]} in row {wrong[0]}, which the row does not have ({len(wrong)} such rows)"
        raise InputError("labels", expected="an option that the row has", got=got, fix="correct the mask or the label")
    return without_absent(logits, exists), valid
