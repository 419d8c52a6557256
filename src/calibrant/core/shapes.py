"""From what people have to one of the four shapes of predictions: arrays of any number of axes, scores, confidences."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.extras import Extras, Shape
from calibrant.core.given_arrays import to_numpy
from calibrant.core.missing import How, Missing, check_how, settle
from calibrant.core.range import hold, without_absent
from calibrant.core.validate import check_labels, check_logits, check_probs, check_scores
from calibrant.core.validate_extras import check_extras
from calibrant.core.views import PROBABILITY_FLOOR, Kind

Ignore = int | Sequence[int]
Given = tuple[Floats, Ints | npt.NDArray[np.bool_], Kind, Extras]

ROWS = ("features", "ids", "groups", "weights", "clusters")


def from_scores(
    scores: Any,
    labels: Any,
    kind: Kind,
    *,
    rows: Mapping[str, Any],
    mask: Any = None,
    axis: int | None = None,
    ignore: Ignore = (),
    classes: Sequence[str] | None = None,
    few_rows: bool = False,
) -> Given:
    """Logits or probabilities with their labels, as `Predictions.from_logits` takes them."""
    names = () if classes is None else _class_names(classes)
    values, given = to_numpy(kind, scores), to_numpy("labels", labels)
    more = {**rows, "mask": mask}
    if axis is not None or values.ndim > 2:
        values, given, more = _flatten(kind, values, given, more, axis)
    dropped = np.isin(given, np.atleast_1d(np.asarray(ignore))) if np.size(ignore) else np.zeros(0, dtype=bool)
    if dropped.any():
        values, given, more = _drop(values, given, more, dropped)
    if names:
        given = _numbers(given, names)
        if values.ndim == 2 and len(names) != values.shape[1]:
            got = f"{len(names)} names for {values.shape[1]} columns"
            raise InputError("classes", expected="one name for each column", got=got, fix="name them all, in order")
    exists = _existing(kind, values, more.pop("mask"))
    if exists is None:
        made, whole = (check_logits if kind == "logits" else check_probs)(values, given, few_rows)
        return made, whole, kind, replace(check_extras(len(whole), **more), classes=names)
    made, whole = _choices(kind, values, given, exists, few_rows)
    extras = replace(check_extras(len(whole), **more), shape="choices", exists=exists, classes=names)
    return made, whole, "logits", extras


def from_binary(
    scores: Any, labels: Any, *, positive: Any, logits: bool, rows: Mapping[str, Any], missing: How = "refuse"
) -> Given:
    """P(positive) or its logit, (n,), with two kinds of labels."""
    scores, labels, rows, gone = _settled("score", scores, labels, rows, missing)
    s = check_scores("scores", scores, logits=logits)
    given = to_numpy("labels", labels)
    if given.shape != s.shape:
        got = f"{given.shape} for {s.shape} scores"
        raise InputError("labels", expected="one label per score", got=f"shape {got}", fix="give one label per row")
    y, names = _positive(given, positive)
    values, kind = _two_columns(s, logits)
    extras = replace(check_extras(len(y), **rows), shape="binary", classes=names, missing=gone)
    return values, y if logits else y == 1, kind, extras


def from_confidence(
    confidence: Any, correct: Any, *, logits: bool, rows: Mapping[str, Any], missing: How = "refuse"
) -> Given:
    """A confidence (n,) and whether the prediction was right: the second column is the probability of being right."""
    noun = "logit of the confidence" if logits else "confidence"
    confidence, correct, rows, gone = _settled(noun, confidence, correct, rows, missing)
    c = check_scores("confidence", confidence, logits=logits)
    y = check_labels(to_numpy("correct", correct), len(c), 2, "correct")
    values, kind = _two_columns(c, logits)
    extras = replace(check_extras(len(y), **rows), shape="confidence", missing=gone)
    return values, y if logits else y == 1, kind, extras


def _settled(
    noun: str, scores: Any, truth: Any, rows: Mapping[str, Any], how: How
) -> tuple[Any, Any, Mapping[str, Any], Missing | None]:
    """The rows that have a score, or all of them where a missing one counts as wrong. NaN and None are none."""
    check_how(how)
    values, right = to_numpy(noun, scores), to_numpy("labels", truth)
    if values.dtype == object:
        values = np.array([np.nan if value is None else value for value in values.ravel()]).reshape(values.shape)
    if values.ndim != 1 or values.dtype.kind != "f" or right.shape != values.shape:
        return scores, truth, rows, None  # what is wrong with them is said where they are checked
    gaps = np.isnan(values)
    gone = settle("scores" if noun == "score" else "confidence", noun, int(gaps.sum()), len(gaps), how)
    if gone is None:
        return values, truth, rows, None
    if how == "drop":
        return *_drop(values, right, rows, gaps), gone
    return np.where(gaps, 0.0, values), np.where(gaps, right.dtype.type(0), right), rows, gone


def _two_columns(s: Array, logits: bool) -> tuple[Array, Kind]:
    """Logits of both events; of probabilities one says it all."""
    if logits:
        return hold(np.stack([np.zeros(len(s)), s], axis=1)), "logits"
    return s, "probs"


def _positive(labels: npt.NDArray[Any], positive: Any) -> tuple[Ints, tuple[str, ...]]:
    """1 for the positive label, 0 for the other; and the names of the two, where they have any."""
    found = np.unique(labels)
    if len(found) > 2:
        some = ", ".join(map(str, found[:4])) + (", ..." if len(found) > 4 else "")
        fix = "with more classes give their scores (n, k) to from_logits or from_probs"
        raise InputError("labels", expected="two different labels", got=f"{len(found)} ({some})", fix=fix)
    if positive is None:
        if labels.dtype.kind not in "iubf" or not np.isin(found, (0, 1)).all():
            last = found[-1].item() if hasattr(found[-1], "item") else found[-1]  # objects of a pandas column
            got, fix = " and ".join(map(str, found)), f"say which is positive: positive={last!r} (--positive {last})"
            raise InputError("labels", expected="0 and 1", got=got, fix=fix)
        return labels.astype(np.int64), ()
    y = labels.astype(str) == str(positive) if labels.dtype.kind in "USO" else labels == positive
    if not np.any(y):
        got = f"{positive}, which no row has"
        fix = f"name one of the labels: positive={str(found[-1])!r} (--positive {found[-1]})"
        raise InputError("positive", expected=" or ".join(map(str, found)), got=got, fix=fix)
    others = [str(label) for label in found if str(label) != str(positive)]
    names = (others[0] if others else f"not {positive}", str(positive)) if labels.dtype.kind in "USO" else ()
    return y.astype(np.int64), names


def _flatten(
    kind: Kind, values: npt.NDArray[Any], labels: npt.NDArray[Any], more: Mapping[str, Any], axis: int | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
    """One row for each pixel or token; those of one item come together, so they are one cluster unless told others."""
    if axis is None or not -values.ndim <= axis < values.ndim or values.ndim < 2:
        expected = "axis: which axis of the array holds the classes"
        fix = "say axis=1 for (N, C, H, W), axis=-1 for (N, T, V)"
        raise InputError(kind, expected=expected, got=f"shape {values.shape} and axis {axis}", fix=fix)
    moved = np.moveaxis(values, axis, -1)
    places = moved.shape[:-1]
    if labels.shape != places:
        expected = f"shape {places}, that of {kind} without the classes"
        raise InputError("labels", expected=expected, got=f"shape {labels.shape}", fix="give one label for each row")
    flat: dict[str, Any] = {}
    for name, array in more.items():
        flat[name] = None if array is None else _flat_rows(name, array, moved.shape, axis)
    if flat.get("clusters") is None and len(places) > 1 and places[0] > 1:
        flat["clusters"] = np.repeat(np.arange(places[0]), int(np.prod(places[1:])))
    return moved.reshape(-1, moved.shape[-1]), labels.reshape(-1), flat


def _flat_rows(name: str, given: Any, moved: tuple[int, ...], axis: int) -> npt.NDArray[Any]:
    """What is known of each row or of each item, row by row."""
    array, places = to_numpy(name, given), moved[:-1]
    n = int(np.prod(places))
    if name == "mask" and array.ndim == len(moved):
        return np.moveaxis(array, axis, -1).reshape(-1, moved[-1])
    if array.shape[: len(places)] == places:
        return array.reshape(n, *array.shape[len(places) :])
    if len(array) == places[0] and array.ndim == 1:
        return np.repeat(array, n // places[0])
    return array  # the check of its length says what is wrong


def _drop(
    values: npt.NDArray[Any], labels: npt.NDArray[Any], more: Mapping[str, Any], dropped: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
    if dropped.all():
        raise InputError("labels", expected="rows that are not ignored", got="none", fix="check the labels to ignore")
    left: dict[str, Any] = {}
    for name, given in more.items():
        array = None if given is None else to_numpy(name, given)
        left[name] = array[~dropped] if array is not None and len(array) == len(dropped) else array
    return values[~dropped], labels[~dropped], left


def _class_names(classes: Sequence[str]) -> tuple[str, ...]:
    names = tuple(map(str, classes))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("classes", expected="names that differ", got=f"{twice} twice", fix="name each class once")
    return names


def _numbers(labels: npt.NDArray[Any], names: tuple[str, ...]) -> npt.NDArray[Any]:
    """Labels as numbers of their classes; labels that are numbers already stay."""
    if labels.dtype.kind not in "USO":
        return labels
    number = {name: i for i, name in enumerate(names)}
    text = labels.astype(str)
    for label in np.unique(text):
        if label not in number:
            raise unknown_name("labels", str(label), names)
    return np.array([number[label] for label in text], dtype=np.int64)


def _existing(kind: Kind, values: npt.NDArray[Any], mask: Any) -> npt.NDArray[np.bool_] | None:
    """Which options each row has; None where all have all."""
    if values.ndim != 2:
        return None
    missing = values == -np.inf if kind == "logits" and values.dtype.kind == "f" else None
    if mask is None:
        return None if missing is None or not missing.any() else ~missing
    array = to_numpy("mask", mask)
    if array.shape != values.shape or array.dtype.kind not in "biu":
        got = f"shape {array.shape} of type {array.dtype}"
        raise InputError(
            "mask", expected=f"shape {values.shape}: True where an option exists", got=got, fix="give both"
        )
    there = array.astype(bool)
    return there if missing is None else there & ~missing


def _choices(
    kind: Kind, values: npt.NDArray[Any], labels: npt.NDArray[Any], exists: npt.NDArray[np.bool_], few_rows: bool
) -> tuple[Floats, Ints]:
    """Logits of options, those that do not exist far below all others."""
    few = np.flatnonzero(exists.sum(axis=1) < 2)
    if len(few):
        left = int(exists[few[0]].sum())
        got = f"{'none' if left == 0 else 'only one'} in row {few[0]} ({len(few)} such rows)"
        raise InputError("mask", expected="at least two options in every row", got=got, fix="drop these questions")
    if kind == "probs":
        off = np.flatnonzero((np.where(exists, 0.0, values) != 0).any(axis=1))
        if len(off):
            got = f"a probability in row {off[0]}"
            raise InputError("probs", expected="0 where an option does not exist", got=got, fix="correct the mask")
        probs, whole = check_probs(values, labels, few_rows)
        given: Floats = np.log(np.maximum(probs, PROBABILITY_FLOOR))
    else:
        lowest = np.where(exists, values, np.inf).min(axis=1, keepdims=True)
        given, whole = check_logits(np.where(exists, values, lowest), labels, few_rows)
    wrong = np.flatnonzero(~exists[np.arange(len(whole)), whole])
    if len(wrong):
        got = f"option {whole[wrong[0]]} in row {wrong[0]}, which is not there ({len(wrong)} such rows)"
        raise InputError("labels", expected="an option that the row has", got=got, fix="correct the mask or the label")
    return without_absent(given, exists), whole


def shape_words(shape: Shape) -> str:
    """What predictions of this shape are, for messages."""
    return {
        "classes": "scores of all classes",
        "binary": "scores of the positive class",
        "confidence": "confidences with nothing but right or wrong",
        "choices": "options that differ from row to row",
    }[shape]
