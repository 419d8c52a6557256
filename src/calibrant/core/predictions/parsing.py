"""Valid arrays for each of the four tasks, from what users and files give.

`Raw` holds the arrays on their way. Each of its methods is one step: it returns a record in which less is open.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats, Integers, Ints, own
from calibrant.core.curves import native
from calibrant.core.curves.curve import LONG
from calibrant.core.curves.native import SoftmaxStats
from calibrant.core.curves.softmax import Scan, scan_logits
from calibrant.core.errors import InputError, ProbabilitiesAsLogitsWarning, unknown_name
from calibrant.core.io.missing import MissingCount, MissingPolicy, apply_policy, check_policy
from calibrant.core.io.score_table import ScoreTable
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.core.predictions.logit_range import MAX_ABS_LOGIT, clip_logits, mask_options
from calibrant.core.predictions.options import Ignore
from calibrant.core.predictions.row_data import RowData, Rows, ScoreType, map_rows
from calibrant.core.predictions.validation import (
    IGNORED,
    check_any_rows,
    check_labels,
    check_logits,
    check_no_gaps,
    check_probs,
    check_row_data,
    check_row_number,
    check_scores,
    check_seen,
    fix_shape,
    look_like_probabilities,
    to_numpy,
)

FEWEST_SCANNED = 8  # classes from which on what the pass finds of a row is small beside the row

PER_CLASS = ("logits", "probs")  # names of scores of all classes

Values = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


class PredictionArrays(NamedTuple):
    """Valid arrays, in the order in which `Predictions` takes them."""

    values: Floats
    labels: Integers | Flags | None
    score_type: ScoreType
    row_data: RowData
    softmax_stats: SoftmaxStats | None = None


@dataclass(frozen=True, kw_only=True)
class Raw:
    """The arrays of predictions on their way from what is given to what is valid."""

    name: str  # of the scores, in messages
    scores: Values
    labels: Values | None
    rows: Rows
    mask: Values | None = None  # the options that each row has
    given: Values  # the scores as they came, whose memory others may write to
    ours: bool  # read by us, so that nobody else writes to any of these arrays
    items_are_clusters: bool = False  # which have no names

    @classmethod
    def read(
        cls,
        name: str,
        scores: npt.ArrayLike,
        labels: npt.ArrayLike | None,
        rows: Rows,
        *,
        mask: npt.ArrayLike | None = None,
        ours: bool = False,
    ) -> "Raw":
        """Arrays of whatever is given; a masked score is an option that a row lacks, or missing if it has one alone."""
        if isinstance(scores, np.ma.MaskedArray) and np.ma.is_masked(scores):
            per_class, there = name in PER_CLASS, ~np.ma.getmaskarray(scores)
            if per_class and (mask is None or np.shape(mask) == there.shape):
                mask = there if mask is None else there & to_numpy("mask", mask).astype(bool)
            scores = scores.filled(0) if per_class else np.where(there, scores.data, np.nan)
        given = to_numpy(name, scores)
        truth = None if labels is None else to_numpy("labels", labels)
        options = None if mask is None else to_numpy("mask", mask)
        return cls(name=name, scores=given, labels=truth, rows=rows, mask=options, given=given, ours=ours)

    def flatten_classes(self, axis: int | None) -> "Raw":
        """One row for each pixel or token, from an array whose classes are on this axis."""
        if axis is None and self.scores.ndim <= 2:
            return self
        values, mask = self.scores, self.mask
        if axis is None or not -values.ndim <= axis < values.ndim or values.ndim < 2:
            expected = "axis: which axis of the array holds the classes"
            fix = "say axis=1 for (N, C, H, W), axis=-1 for (N, T, V)"
            raise InputError(self.name, expected=expected, got=f"shape {values.shape} and axis {axis}", fix=fix)
        classes_last = np.moveaxis(values, axis, -1)
        places, k = classes_last.shape[:-1], classes_last.shape[-1]
        if self.labels is not None and self.labels.shape != places:
            expected, got = f"shape {places}, that of {self.name} without the classes", f"shape {self.labels.shape}"
            fix = fix_shape(self.labels, places, k, axis % values.ndim)
            raise InputError("labels", expected=expected, got=got, fix=fix)
        if mask is not None and mask.ndim == values.ndim:
            mask = np.moveaxis(mask, axis, -1).reshape(-1, k)
        return replace(self, scores=classes_last.reshape(-1, k), mask=mask)._flatten_rows(places)

    def flatten_scores(self) -> "Raw":
        """One row for each of the scores, of any number of axes, and one label for each score."""
        values, truth = self.scores, self.labels
        if truth is not None and truth.shape != values.shape:
            fix = "give one label per score"
            if truth.ndim > values.ndim:
                fix = fix_shape(truth, values.shape, k=0)
            if values.ndim == 2 and truth.ndim == 1:
                column = "scores[:, 0]" if values.shape[1] == 1 else "scores[:, 1] of two columns"
                fix = f"give one score per row, {column}; for all classes use from_logits or from_probs"
            got = f"shape {truth.shape} for scores of shape {values.shape}"
            raise InputError("labels", expected="one label per score", got=got, fix=fix)
        return self if values.ndim <= 1 else replace(self, scores=values.reshape(-1))._flatten_rows(values.shape)

    def _flatten_rows(self, places: tuple[int, ...]) -> "Raw":
        """One entry per row of labels and data of rows; rows of one item form a cluster unless the user gives them."""
        n = int(np.prod(places))

        def flat(name: str, argument: npt.ArrayLike) -> npt.ArrayLike:
            array = to_numpy(name, argument)
            if array.shape[: len(places)] == places:
                return array.reshape(n, *array.shape[len(places) :])
            if array.ndim == 1 and len(array) == places[0]:
                return np.repeat(array, n // places[0])
            return array  # the check of its length says what is wrong

        rows = map_rows(self.rows, flat)
        if "clusters" not in rows and len(places) > 1 and places[0] < n:
            rows["clusters"] = np.repeat(np.arange(places[0], dtype=np.int32), n // places[0])
        labels, named = None if self.labels is None else self.labels.reshape(-1), self.rows.get("clusters") is not None
        return replace(self, labels=labels, rows=rows, items_are_clusters=not named and "clusters" in rows)

    def check_order(self) -> "Raw":
        """Refuse labels in the place of the scores, and scores in the place of the labels."""
        values, truth = self.scores, self.labels
        if truth is None or truth.dtype.kind != "f":
            return self
        if self.name in PER_CLASS:
            swapped = values.ndim < truth.ndim and values.dtype.kind in "iubUS"
        else:
            swapped = values.dtype.kind in "bUS" or bool(np.isin(values, (0, 1)).all())
            swapped = swapped and bool(np.any((truth > 0) & (truth < 1)))
        if swapped:
            got = f"labels of type {values.dtype}, then scores of shape {truth.shape}"
            raise InputError(self.name, expected="scores first, then labels", got=got, fix="swap the two arguments")
        return self

    def leave_out(self, ignore: Ignore) -> "Raw":
        """The rows that have none of these labels."""
        if self.labels is None or not np.size(ignore):
            return self
        ignored = np.isin(self.labels, np.atleast_1d(np.asarray(ignore)))
        return self.drop(ignored) if ignored.any() else self

    def drop(self, dropped: Flags) -> "Raw":
        if dropped.all():
            fix = "check the labels to ignore"
            raise InputError("labels", expected="rows that are not ignored", got="none", fix=fix)

        def keep(name: str, argument: npt.ArrayLike) -> Values:
            array = to_numpy(name, argument)
            return array[~dropped] if array.ndim and len(array) == len(dropped) else array

        return replace(
            self,
            scores=self.scores[~dropped],
            labels=None if self.labels is None else self.labels[~dropped],
            mask=None if self.mask is None else keep("mask", self.mask),
            rows=map_rows(self.rows, keep),
        )

    def number_labels(self, names: tuple[str, ...]) -> "Raw":
        """Labels as numbers of their classes, one name for each column; labels that are numbers already stay."""
        if not names:
            return self
        numbers = self.labels
        if numbers is not None and numbers.dtype.kind in "USO":
            check_no_gaps("labels", numbers)
            number = {name: i for i, name in enumerate(names)}
            text = numbers.astype(str)
            for label in np.unique(text):
                if label not in number:
                    raise unknown_name("labels", str(label), names)
            numbers = np.array([number[label] for label in text], dtype=np.int64)
        if self.scores.ndim == 2 and len(names) != self.scores.shape[1]:
            got = f"{len(names)} names for {self.scores.shape[1]} columns"
            raise InputError("classes", expected="one name for each column", got=got, fix="name them all, in order")
        return replace(self, labels=numbers)

    def resolve_missing(self, noun: str, policy: MissingPolicy) -> tuple["Raw", MissingCount | None]:
        """Rows without a score (NaN or None) are treated as the policy says."""
        if self.scores.dtype.kind != "f":
            return self, None
        gaps = np.isnan(self.scores)
        missing = apply_policy(self.name, noun, int(gaps.sum()), len(gaps), policy)
        if missing is None:
            return self, None
        if policy == "drop":
            return self.drop(gaps), missing
        wrong = None if self.labels is None else np.where(gaps, self.labels.dtype.type(0), self.labels)
        return replace(self, scores=np.where(gaps, 0.0, self.scores), labels=wrong), missing

    def scan(self) -> Scan | None:
        """One compiled pass over plain logits that are valid; None where the separate checks have to look."""
        values, truth = self.scores, self.labels
        if self.name != "logits" or self.mask is not None or not native.is_available():
            return None
        if values.ndim != 2 or values.dtype not in (np.float32, np.float64) or values.shape[1] < 2:
            return None
        if not values.flags.c_contiguous or (len(values) >= LONG and values.shape[1] < FEWEST_SCANNED):
            return None
        fits = truth is not None and truth.shape == (len(values),) and len(values) < LONG  # else it is not kept
        scan = scan_logits(values, truth if fits else None)
        return scan if scan.finite and scan.low >= -MAX_ABS_LOGIT and scan.high <= MAX_ABS_LOGIT else None

    def options(self) -> Flags | None:
        """The options that each row has; None where all rows have all."""
        values, mask = self.scores, self.mask
        if values.ndim != 2:
            return None
        absent = None
        if self.name == "logits" and values.dtype.kind == "f" and values.size and values.min() == -np.inf:
            absent = values == -np.inf
        if mask is None:
            return None if absent is None else ~absent
        if mask.shape != values.shape or mask.dtype.kind not in "biu":
            expected = f"shape {values.shape}: True where an option exists"
            raise InputError("mask", expected=expected, got=f"shape {mask.shape} of type {mask.dtype}", fix="give both")
        present = mask.astype(bool)
        return present if absent is None else present & ~absent

    def own(self, values: Floats) -> Floats:
        """These valid scores in memory that nobody else writes to."""
        return values if self.ours else own(values, self.given)

    def row_data(self, n: int, **known: Any) -> RowData:
        """The checked data of n rows, and what is known of all."""
        data = check_row_data(n, self.rows, ours=self.ours, clusters_have_names=not self.items_are_clusters)
        return replace(data, **known)


def parse_scores(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike | None,
    score_type: ScoreType,
    *,
    mask: npt.ArrayLike | None = None,
    axis: int | None = None,
    ignore: Ignore = (),
    classes: Sequence[str] | None = None,
    ours: bool = False,
    **rows: Unpack[Rows],
) -> PredictionArrays:
    """Logits or probabilities with their labels, as `Predictions.from_logits` takes them.

    `ours` says that nobody else writes to these arrays.
    """
    names = () if classes is None else _check_class_names(classes)
    raw = Raw.read(score_type, scores, labels, rows, mask=mask, ours=ours)
    raw = raw.check_order().flatten_classes(axis).leave_out(ignore).number_labels(names)
    check_any_rows(score_type, raw.scores)
    scan = raw.scan()
    if scan is None and (options := raw.options()) is not None:
        return _parse_choices(raw, options, names)
    check = check_logits if score_type == "logits" else check_probs
    values: Floats = raw.scores.view() if scan is not None else check(raw.scores)
    if score_type == "logits" and (scan is None or (scan.low >= 0 and scan.high <= 1)):
        _warn_of_probabilities(values)
    truth = None if raw.labels is None else _narrow(check_labels(raw.labels, *values.shape), values.shape[1])
    stats = None if scan is None or len(values) >= LONG else scan.top
    return PredictionArrays(raw.own(values), truth, score_type, raw.row_data(len(values), classes=names), stats)


def _parse_choices(raw: Raw, exists: Flags, names: tuple[str, ...]) -> PredictionArrays:
    """Logits of options, those that do not exist far below all others, and the numbers of the right options."""
    few = np.flatnonzero(exists.sum(axis=1) < 2)
    if len(few):
        left = int(exists[few[0]].sum())
        got = f"{'none' if left == 0 else 'only one'} in row {few[0]} ({len(few)} such rows)"
        raise InputError("mask", expected="at least two options in every row", got=got, fix="drop these questions")
    if raw.name == "probs":
        off = np.flatnonzero((np.where(exists, 0.0, raw.scores) != 0).any(axis=1))
        if len(off):
            got = f"a probability in row {off[0]}"
            raise InputError("probs", expected="0 where an option does not exist", got=got, fix="correct the mask")
        logits: Floats = np.log(np.maximum(check_probs(raw.scores), PROBABILITY_FLOOR))
    else:
        lowest = np.where(exists, raw.scores, np.inf).min(axis=1, keepdims=True)
        logits = check_logits(np.where(exists, raw.scores, lowest))
    truth = None
    if raw.labels is not None:
        truth = check_labels(raw.labels, *logits.shape)
        wrong = np.flatnonzero(~exists[np.arange(len(truth)), truth])
        if len(wrong):
            got = f"option {truth[wrong[0]]} in row {wrong[0]}, which the row does not have ({len(wrong)} such rows)"
            fix = "correct the mask or the label"
            raise InputError("labels", expected="an option that the row has", got=got, fix=fix)
    row_data = raw.row_data(len(logits), task="choice", option_mask=exists, classes=names)
    return PredictionArrays(mask_options(logits, exists), truth, "logits", row_data)


def _warn_of_probabilities(logits: Floats) -> None:
    if look_like_probabilities(logits):
        warnings.warn(
            "every row of these logits lies in [0, 1] and sums to one, as probabilities do: if they are probabilities, "
            "use from_probs (a column or array named probs)",
            ProbabilitiesAsLogitsWarning,
            stacklevel=4,
        )


def _narrow(labels: Ints, k: int) -> Integers:
    """Labels of very many rows in as few bytes as k classes need."""
    return labels if len(labels) < LONG else labels.astype(np.min_scalar_type(k - 1))


def parse_event(
    task: Literal["binary", "confidence"],
    scores: npt.ArrayLike,
    labels: npt.ArrayLike | None,
    *,
    positive: Any = None,
    logits: bool = False,
    ignore: Ignore = (),
    missing: MissingPolicy = "error",
    ours: bool = False,
    **rows: Unpack[Rows],
) -> PredictionArrays:
    """P(positive) and two kinds of labels, or a confidence and whether the prediction was right, of any axes.

    The score may be a logit. Of a confidence the second column is the probability of being right.
    """
    check_policy(missing)
    name, noun = ("scores", "score") if task == "binary" else ("confidence", "confidence")
    noun = "logit of the confidence" if logits and task == "confidence" else noun
    raw = Raw.read(name, scores, labels, rows, ours=ours)
    if raw.scores.dtype == object:
        numbers = [np.nan if value is None else value for value in raw.scores.ravel()]
        raw = replace(raw, scores=np.array(numbers).reshape(raw.scores.shape))
    raw, gaps = raw.check_order().flatten_scores().leave_out(ignore).resolve_missing(noun, missing)
    s = check_scores(name, raw.scores, logits=logits)
    check_any_rows(name, s)
    truth: Ints | None = None
    names: tuple[str, ...] = ()
    if raw.labels is not None and task == "binary":
        truth, names = _positive(raw.labels, positive)
    elif raw.labels is not None:
        truth = check_labels(raw.labels, len(s), 2, "correct")
    row_data = raw.row_data(len(s), task=task, classes=names, missing=gaps)
    if logits:
        both = clip_logits(np.stack([np.zeros(len(s)), s], axis=1))
        return PredictionArrays(both, truth, "logits", row_data)
    return PredictionArrays(raw.own(s), None if truth is None else truth == 1, "probs", row_data)


def parse_table(table: ScoreTable, *, allow_few_rows: bool = False) -> PredictionArrays:
    """The scores of a file or frame; errors name it."""
    try:
        arrays = _parse_table(table)
        if not allow_few_rows and table.labels is not None:
            check_row_number(table.score_name, arrays.values, known=table.rows_known)
        row_data = replace(arrays.row_data, missing=table.missing, notes=table.notes)
        if table.predicted is not None and row_data.task != "confidence":
            k = 2 if arrays.values.ndim == 1 else arrays.values.shape[1]
            predicted = check_labels(table.predicted, len(arrays.values), k, "predicted")
            row_data = replace(row_data, predicted=predicted)
            arrays = arrays._replace(softmax_stats=None)  # the confidence is that of this prediction
        if table.seen is not None:
            row_data = replace(row_data, seen=check_seen(table.seen))
        return arrays._replace(row_data=row_data)
    except InputError as error:
        raise InputError.inside(table.place, error) from None


def _parse_table(table: ScoreTable) -> PredictionArrays:
    options: dict[str, Any] = {name: getattr(table, name) for name in Rows.__annotations__}
    options["ours"] = not table.shared
    if table.content in ("logits", "probs"):
        mask = np.ones(np.shape(table.scores), dtype=bool) if table.mask is None and table.all_options else table.mask
        score_type: ScoreType = "logits" if table.logits else "probs"
        options |= {"mask": mask, "classes": table.classes or None}
        return parse_scores(table.scores, table.labels, score_type, **options)
    options["logits"] = table.logits
    if table.content not in ("confidence", "confidence_logit"):
        return _parse_binary_table(table, options)
    if table.positive is not None or table.classes:
        got = "a positive label" if table.positive is not None else "names of classes"
        fix = "leave them out: a confidence is right or wrong"
        raise InputError("confidence", expected="whether it was right, 0 or 1", got=got, fix=fix)
    return parse_event("confidence", table.scores, table.labels, **options)


def _parse_binary_table(table: ScoreTable, options: dict[str, Any]) -> PredictionArrays:
    """Binary predictions of a table; of two named classes the second is positive, unless another is named."""
    names, positive = table.classes, table.positive
    if names and len(names) != 2:
        got = f"{len(names)} names"
        raise InputError("classes", expected="two, the positive one last", got=got, fix="name both, or neither")
    if table.labels is not None:
        if positive is None and names and table.labels.dtype.kind in "USO":
            positive = names[1]
        positive = positive_like(positive, table.labels)
    arrays = parse_event("binary", table.scores, table.labels, positive=positive, **options)
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


def _positive(labels: Values, positive: Any) -> tuple[Ints, tuple[str, ...]]:
    """1 for the positive label, 0 for the other; and the names of the two, where they have any."""
    check_no_gaps("labels", labels)
    kinds, counts = np.unique(labels, return_counts=True)
    if len(kinds) > 2:
        examples = ", ".join(map(str, kinds[:4])) + (", ..." if len(kinds) > 4 else "")
        fix = "with more classes give their scores (n, k) to from_logits or from_probs"
        if marks := [kind for kind in kinds if kind in IGNORED]:
            fix = f"say ignore={marks[0]} if this marks rows to leave out"
        elif labels.dtype.kind == "f" and kinds[0] >= 0 and kinds[-1] <= 1:
            fix = "give 0 or 1; a share or a tie is no label: drop these rows, or say from where on a row is positive"
        raise InputError("labels", expected="two different labels", got=f"{len(kinds)} ({examples})", fix=fix)
    if positive is None:
        if labels.dtype.kind not in "iubf" or not np.isin(kinds, (0, 1)).all():
            got = " and ".join(f"{kind} in {count:,} rows" for kind, count in zip(kinds, counts, strict=True))
            fix = f"say which is positive, the label whose probability the scores are: {_choices_of_positive(kinds)}"
            raise InputError("labels", expected="0 and 1", got=got, fix=fix)
        return labels.astype(np.int64), ()
    text = labels.dtype.kind in "USO"
    y = labels.astype(str) == str(positive) if text else labels == positive
    typo = str(positive).strip().lower() == str(kinds[0]).strip().lower() if text else isinstance(positive, str)
    if not np.any(y) and (len(kinds) > 1 or typo):  # all rows may be negative
        got = f"{positive}, which no row has"
        fix = f"name one of the labels: {_choices_of_positive(kinds)}"
        raise InputError("positive", expected=" or ".join(map(str, kinds)), got=got, fix=fix)
    others = [str(label) for label in kinds if str(label) != str(positive)]
    names = (others[0] if others else f"not {positive}", str(positive)) if text else ()
    return y.astype(np.int64), names


def _choices_of_positive(kinds: Values) -> str:
    """Both labels as values of `positive`, for an error: only the user knows which is right."""
    plain = [kind.item() if hasattr(kind, "item") else kind for kind in kinds]  # objects of a pandas column have none
    return " or ".join(f"positive={kind!r} (--positive {kind})" for kind in plain)


def _check_class_names(classes: Sequence[str]) -> tuple[str, ...]:
    names = tuple(map(str, classes))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("classes", expected="names that differ", got=f"{twice} twice", fix="name each class once")
    return names
