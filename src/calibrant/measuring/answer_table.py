"""Answers of several models to the same questions: a long table as arrays of models by questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints
from calibrant.core.errors import InputError, unknown_name, visible
from calibrant.core.io.column_names import ColumnRoles, missing_from
from calibrant.core.io.columns import parse_numbers
from calibrant.core.io.formats import plain_file
from calibrant.core.io.frames import plain_frame
from calibrant.core.io.missing import MissingPolicy, check_policy
from calibrant.core.io.tables import column_names, read_table
from calibrant.core.statistics.fewest_rows import FEWEST_ROWS
from calibrant.core.text import number_format as fmt

if TYPE_CHECKING:
    import polars as pl

Bools = npt.NDArray[np.bool_]

QUESTION_NAMES = ("id", "ids", "question", "question_id", "doc_id")
MOST_MODELS = 500
MOST_CELLS = 1 << 27  # models x questions, held as one array for each confidence
NO_GROUP = "(none)"


@dataclass(frozen=True, kw_only=True)
class ConfidenceCounts:
    """Counts of one model's column of confidences: rows, missing, out of range, used and distinct ones."""

    rows: int  # answers of the model in the table
    used: int  # with a confidence in 0 to 1
    missing: int
    above: int  # more than 1
    below: int  # less than 0
    distinct: int  # different values among those used


@dataclass(frozen=True, kw_only=True)
class AnswerTable:
    """Models by questions: whether the answer was right, and one or several confidences, NaN where there is none.

    `used` says which cells count for a confidence. A question that some model did not answer counts for none, or as
    wrong for that model; what an answer without a confidence in 0 to 1 does is for `policy` to say.
    """

    models: tuple[str, ...]
    questions: int
    groups: tuple[str, ...]  # names; none where the table has no groups
    group_of: Ints  # of each question
    correct: Bools
    confidence: Mapping[str, Array]
    counts: Mapping[str, tuple[ConfidenceCounts, ...]]
    policy: MissingPolicy
    left_out: str = ""  # which questions count for no model, and why

    def used(self, column: str) -> Bools:
        """The cells (model, question) that have a confidence."""
        return ~np.isnan(self.confidence[column])

    def correct_with(self, column: str) -> Bools:
        """Whether each answer counts as right when this confidence is used; without a confidence it does not."""
        return self.correct & self.used(column)


def read_answers(
    source: Any,
    *,
    model: str = "model",
    confidence: Sequence[str] = ("confidence",),
    correct: str = "correct",
    group: str | None = None,
    question: str | None = None,
    missing: MissingPolicy = "drop",
) -> AnswerTable:
    """Read answers from a Parquet, CSV or JSONL file or a frame, with one row for each model and question.

    >>> rows = {"model": ["a", "a", "b", "b"], "id": [1, 2, 1, 2], "confidence": [0.9, None, 0.6, 7.0]}
    >>> table = read_answers(rows | {"correct": [1, 1, 0, 1]})
    >>> table.models, table.counts["confidence"][1].above, table.used("confidence").tolist()
    (('a', 'b'), 1, [[True, False], [True, False]])
    """
    policy = check_policy(missing)
    if not confidence or len(set(confidence)) < len(confidence):
        got = ", ".join(confidence) or "none"
        raise InputError("confidence columns", expected="each column once", got=got, fix="name one, or several")
    if len(confidence) > 1 and policy == "count_as_wrong":
        fix = "read one confidence at a time, or use missing='drop'"
        raise InputError("missing='count_as_wrong'", expected="one confidence column", got="several", fix=fix)
    named = [model, correct, *confidence, *([group] if group else []), *([question] if question else [])]
    frame, place = _read(source, named)
    ids = question if question is not None else next((n for n in QUESTION_NAMES if n in frame.columns), None)
    if ids is None:
        raise InputError(
            place,
            expected=f"a column that says which question a row answers ({', '.join(QUESTION_NAMES)})",
            got="none of these",
            fix="name it: --id-column NAME (question='NAME' in Python)",
        )
    if frame.height == 0:
        raise InputError(place, expected="rows", got="none", fix="write the table again")
    models, model_of = _codes(frame[model], place, "a model in every row")
    questions, question_of = _codes(frame[ids], place, "a question in every row")
    _check_size(len(models), len(questions), place)
    where = model_of * len(questions) + question_of
    _check_once(where, models, questions, place)
    shape, left_out = (len(models), len(questions)), ""
    answered = np.zeros(shape, dtype=bool)
    answered.ravel()[where] = True
    if answered.sum(axis=0).max() < 2:
        raise InputError(
            place, expected="questions that several models answered", got="no common question", fix=_ID_FIX
        )
    ranked = answered.sum(axis=1) >= FEWEST_ROWS  # of fewer answers a model has no interval, and no rank
    if policy != "count_as_wrong" and not (common := answered[ranked].all(axis=0)).all():
        left_out = _left_out([models[i] for i in np.flatnonzero(ranked)], answered[ranked], place)
        kept = common[question_of]
        frame, model_of, question_of = frame.filter(kept), model_of[kept], (np.cumsum(common) - 1)[question_of[kept]]
        shape = len(models), int(common.sum())
        where = model_of * shape[1] + question_of
    right = np.zeros(shape, dtype=bool)
    right.ravel()[where] = _truth(frame[correct], place)
    scores, counts = {}, {}
    for column in confidence:
        cells = np.full(shape, np.nan)
        cells.ravel()[where] = number_column(frame, column, place)
        there = np.zeros(shape, dtype=bool)
        there.ravel()[where] = True
        counts[column] = _count(cells, there, column, place)
        scores[column] = _resolve(cells, there, right, column, place, policy)
    names, group_of = _groups(frame, group, question_of, shape[1], place)
    return AnswerTable(
        models=tuple(models),
        questions=shape[1],
        groups=names,
        group_of=group_of,
        correct=right,
        confidence=scores,
        counts=counts,
        policy=policy,
        left_out=left_out,
    )


def _left_out(models: Sequence[str], answered: Bools, place: str) -> str:
    """The questions that not every model answered, in words; an error where fewer than 10 are left to compare on."""
    questions, common = answered.shape[1], int(answered.all(axis=0).sum())
    absent = (~answered).sum(axis=1)
    order = [i for i in np.argsort(-absent, kind="stable") if absent[i]]
    who = fmt.list_words([f"{models[i]} {absent[i]:,}" for i in order], most=3)
    if common < FEWEST_ROWS:
        raise InputError(
            place,
            expected=f"at least {FEWEST_ROWS} questions that every model answered",
            got=f"{common} of {questions:,} (without an answer: {who})",
            fix="leave out the models that answered few, or count what they did not answer as wrong: "
            "--missing count_as_wrong (missing='count_as_wrong' in Python)",
        )
    return (
        f"{questions - common:,} of {questions:,} questions are left out, because not every model answered them "
        f"(without an answer: {who})."
    )


_ID_FIX = "name the column that says which question a row answers: --id-column NAME"


def _read(source: Any, named: Sequence[str]) -> tuple["pl.DataFrame", str]:
    wanted = {*named, *QUESTION_NAMES}
    if isinstance(source, str | Path):
        with plain_file(source) as file:
            if file.suffix == ".npz":
                fix = "write a Parquet, CSV or JSONL file"
                raise InputError(str(source), expected="a table", got="an npz file", fix=fix)
            names = column_names(file)
            _check_columns(names, named, str(source))
            return read_table(file, [name for name in names if name in wanted]), str(source)
    frame = plain_frame(source, lambda name: name in wanted)
    _check_columns(frame.columns, named, "frame")
    return frame, "frame"


def _check_columns(names: Sequence[str], named: Sequence[str], place: str) -> None:
    for name in named:
        if name not in names:
            if not names:
                raise missing_from(place, f"a column named {name}", names)
            raise unknown_name(f"{place}, column", name[:80], [known[:80] for known in names[:200]])


def _codes(series: "pl.Series", place: str, expected: str) -> tuple[list[str], Ints]:
    """The different values as text, in the order in which they appear, and the number of each row's value."""
    if series.null_count():
        got = f"none in {fmt.count(series.null_count(), 'row')}"
        raise InputError(f"{place}, column {series.name}", expected=expected, got=got, fix="fill or drop these rows")
    known = series.unique(maintain_order=True)
    code = series.to_frame().join(
        known.to_frame().with_row_index("code"), on=series.name, how="left", maintain_order="left"
    )["code"]
    return [visible(str(value)) for value in known.to_list()], code.to_numpy().astype(np.int64)


def _check_size(models: int, questions: int, place: str) -> None:
    if models < 2:
        fix = "for one model use calibrant report"
        raise InputError(place, expected="at least two models", got="one", fix=fix)
    if models > MOST_MODELS or models * questions > MOST_CELLS:
        raise InputError(
            place,
            expected=f"at most {MOST_MODELS} models, and {MOST_CELLS:,} models times questions",
            got=f"{models:,} models and {questions:,} questions",
            fix="keep the models and questions to compare; is another column the model?",
        )


def _check_once(where: Ints, models: Sequence[str], questions: Sequence[str], place: str) -> None:
    order = np.sort(where)
    twice = order[1:][order[1:] == order[:-1]]
    if len(twice):
        model, question = divmod(int(twice[0]), len(questions))
        got = f"{len(twice):,} more, the first for '{models[model]}' and question '{questions[question]}'"
        fix = f"keep one answer, or {_ID_FIX}"
        raise InputError(place, expected="one row for each model and question", got=got, fix=fix)


def _truth(series: "pl.Series", place: str) -> Bools:
    import polars as pl

    where, fix = f"{place}, column {series.name}", "write 1 for right and 0 for wrong"
    if series.null_count():
        got = f"none in {fmt.count(series.null_count(), 'row')}"
        raise InputError(where, expected="0 or 1 in every row", got=got, fix=fix)
    if series.dtype == pl.Boolean:
        return series.to_numpy()
    if not series.dtype.is_numeric():
        raise InputError(where, expected="0 or 1", got=f"type {series.dtype}", fix=fix)
    values = series.to_numpy()
    if not np.isin(values, (0, 1)).all():
        row = int(np.flatnonzero(~np.isin(values, (0, 1)))[0])
        raise InputError(where, expected="0 or 1", got=f"{values[row]:g} in row {row}", fix=fix)
    return np.asarray(values == 1)


def number_column(frame: "pl.DataFrame", column: str, place: str) -> Array:
    """A column of numbers; NaN where a cell is empty or says that there is none."""
    import polars as pl

    series = parse_numbers(frame.select(column), place, ColumnRoles("confidence", column))[column]
    if series.null_count() == len(series) or series.dtype == pl.Boolean:
        series = series.cast(pl.Float64)
    if not series.dtype.is_numeric():
        raise InputError(
            f"{place}, column {column}",
            expected="numbers",
            got=f"type {series.dtype}",
            fix="check the cells, or name another column",
        )
    return series.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _count(cells: Array, there: Bools, column: str, place: str) -> tuple[ConfidenceCounts, ...]:
    above, below, none = cells > 1, cells < 0, np.isnan(cells) & there
    known = int((~np.isnan(cells)).sum())
    if known and above.sum() > known / 2:
        raise InputError(
            f"{place}, column {column}",
            expected="confidences from 0 to 1",
            got=f"more than 1 in {fmt.percent(above.sum() / known)} of them",
            fix="divide percentages by 100, or name another column",
        )
    fine = (cells >= 0) & (cells <= 1)
    return tuple(
        ConfidenceCounts(
            rows=int(there[i].sum()),
            used=int(fine[i].sum()),
            missing=int(none[i].sum()),
            above=int(above[i].sum()),
            below=int(below[i].sum()),
            distinct=len(np.unique(cells[i][fine[i]])),
        )
        for i in range(len(cells))
    )


def _resolve(cells: Array, there: Bools, right: Bools, column: str, place: str, policy: MissingPolicy) -> Array:
    """The confidences in 0 to 1; NaN for the others, or 0 and wrong where they count as that."""
    strange = there & ~((cells >= 0) & (cells <= 1))
    if strange.any() and policy == "error":
        raise InputError(
            f"{place}, column {column}",
            expected="a confidence from 0 to 1 in every row",
            got=f"none in {int(strange.sum()):,} of {int(there.sum()):,} rows",
            fix="use missing='drop' (--missing drop), or 'count_as_wrong'",
        )
    if policy == "count_as_wrong":
        # a model without any confidence is not calibrated by saying 0
        speaks = np.asarray((there & ~strange).any(axis=1))[:, None]
        strange = (strange | ~there) & speaks
        right[strange] = False
        return np.where(strange, 0.0, np.where(speaks, cells, np.nan))
    return np.where(strange, np.nan, cells)


def _groups(
    frame: "pl.DataFrame", column: str | None, question_of: Ints, questions: int, place: str
) -> tuple[tuple[str, ...], Ints]:
    """The names of the groups, sorted, and the group of each question; rows of one question must agree."""
    if column is None:
        return (), np.zeros(questions, dtype=np.int64)
    import polars as pl

    names, code = np.unique(frame[column].cast(pl.String).fill_null(NO_GROUP).to_numpy(), return_inverse=True)
    group_of = np.zeros(questions, dtype=np.int64)
    group_of[question_of] = code
    if (group_of[question_of] != code).any():
        row = int(np.flatnonzero(group_of[question_of] != code)[0])
        got = f"two for one question ({names[code[row]]} and {names[group_of[question_of[row]]]})"
        raise InputError(f"{place}, column {column}", expected="one group for each question", got=got, fix=_ID_FIX)
    return tuple(visible(str(name)) for name in names), group_of
