"""Read samples of lm-evaluation-harness (`--log_samples`): questions with log-likelihoods of their options."""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.io.column_names import ColumnRoles, Columns
from calibrant.core.io.jsonl import json_objects
from calibrant.core.io.missing import apply_policy
from calibrant.core.io.score_table import ScoreTable, build_table
from calibrant.core.io.size_limits import check_unpacked

PER_OPTION = "Scores are the log-likelihoods of the options, as acc compares them."
PER_CHARACTER = "Scores are the log-likelihoods of the options divided by their number of characters, as in acc_norm."

LISTED = re.compile(r"\[\s*(\d{1,9}(\s*,\s*\d{1,9})*)?\s*\]")  # numbers of options, written as text
SEVERAL_RIGHT = (
    "tasks with several right options cannot be read: log one with a single right option (truthfulqa_mc1), "
    "or name the field of the right option with label='...' (--label-column)"
)


class NotMultipleChoiceError(InputError):
    """A task that generates text: there is no score of every option."""


@dataclass(frozen=True)
class SampleQuestion:
    """A sample: the log-likelihood of every option, the number of the right option, and the whole record."""

    scores: list[float]
    right: int
    sample: dict[str, Any]

    def read_field(self, name: str) -> Any:
        """A field of the sample, or of its document."""
        doc = self.sample.get("doc")
        return self.sample.get(name, doc.get(name) if isinstance(doc, dict) else None)


def is_lm_eval(file: Path, columns: Columns) -> bool:
    """Whether the first object is a logged sample and the user names no column of scores."""
    if columns.score or columns.confidence or columns.correct:
        return False
    first = next((record for _, record in json_objects(file)), {})
    return "doc_id" in first and ("resps" in first or "filtered_resps" in first)


def read_lm_eval(file: Path, columns: Columns) -> ScoreTable:
    """Questions as choices: each row has the options of its question."""
    questions, empty, filters = list[SampleQuestion](), 0, dict[str, None]()
    for number, sample in json_objects(file):
        filters[str(sample.get("filter", ""))] = None
        if str(sample.get("filter", "")) != next(iter(filters)):
            continue  # the same questions again, as another filter of the harness sees them
        if not (sample.get("filtered_resps") or sample.get("resps")):
            empty += 1
            continue
        questions.append(_question(f"{file}, line {number}", sample, columns))
    missing = apply_policy(str(file), "score", empty, empty + len(questions), columns.missing)
    arrays = _arrays(file, questions)
    for array, name in (("ids", columns.id or "doc_id"), ("groups", columns.group), ("clusters", columns.cluster)):
        if name not in (None, "none"):
            arrays[array] = np.array([str(value) for value in _field(file, questions, str(name))])
    if columns.weight not in (None, "none"):
        arrays["weights"] = np.array(_field(file, questions, str(columns.weight)))
    notes = [PER_CHARACTER if columns.per_character else PER_OPTION]
    if len(filters) > 1:
        notes.append(f"Of the filters {', '.join(filters)} the first was read.")
    roles = ColumnRoles("logits", "resps", dict.fromkeys(arrays, ""))
    return build_table(str(file), arrays, roles, columns, missing=missing, notes=tuple(notes), rows_known=True)


def _arrays(file: Path, questions: list[SampleQuestion]) -> dict[str, Any]:
    k = max(len(question.scores) for question in questions)
    check_unpacked(file, len(questions) * k * 8)
    logits, mask = np.zeros((len(questions), k)), np.zeros((len(questions), k), dtype=bool)
    for row, question in enumerate(questions):
        logits[row, : len(question.scores)] = question.scores
        mask[row, : len(question.scores)] = True
    return {"logits": logits, "mask": mask, "labels": np.array([question.right for question in questions])}


def _field(file: Path, questions: list[SampleQuestion], name: str) -> list[Any]:
    values = [question.read_field(name) for question in questions]
    if gaps := sum(value is None for value in values):
        got = f"none in {gaps:,} of {len(values):,} samples"
        raise InputError(f"{file}, {name}", expected="a field of every sample or of its doc", got=got, fix="check it")
    return values


def _question(where: str, sample: dict[str, Any], columns: Columns) -> SampleQuestion:
    responses = sample.get("filtered_resps") or sample["resps"]
    scores = [_score(where, response) for response in responses] if isinstance(responses, list) else []
    arguments = _arguments(sample)
    if len(arguments) == len(scores) and any(
        context for context, _ in arguments
    ):  # acc_mutual_info asks without a question too
        there = [i for i, (context, _) in enumerate(arguments) if context]
        scores, arguments = [scores[i] for i in there], [arguments[i] for i in there]
    if len(scores) < 2:
        got = f"{len(scores)}, so this is not multiple choice"
        expected = "log-likelihoods of two options or more"
        raise NotMultipleChoiceError(where, expected=expected, got=got, fix="log another task")
    options = [text.removeprefix(" ") for _, text in arguments]  # the space is the harness's own
    if columns.label is not None and columns.label not in sample:
        raise unknown_name(f"{where}, label column", columns.label[:80], sample)
    right = _right(where, sample, columns.label or "target", scores, options)
    if columns.label is None:
        _check_answers(where, sample.get("doc"), options, len(scores))
        _check_accuracy(where, sample.get("acc"), scores, right)
    if columns.per_character:
        if len(options) != len(scores):
            fix = "log the samples again, or leave out per_character"
            raise InputError(where, expected="arguments, with the text of every option", got="none", fix=fix)
        scores = [score / max(1, len(text)) for score, text in zip(scores, options, strict=True)]
    return SampleQuestion(scores, right, sample)


def _score(where: str, response: Any) -> float:
    """The log-likelihood of one option: [-1.5, false], ["-1.5", "False"], or a list of one of them."""
    while isinstance(response, list) and response:
        response = response[0]
    try:
        score = float(response) if isinstance(response, str | int | float) else math.nan
    except (ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        got = f"'{str(response)[:40]}'"
        fix = "tasks that generate text have no score of their answer: log a multiple-choice task"
        raise NotMultipleChoiceError(where, expected="a log-likelihood of every option", got=got, fix=fix)
    return score


def _check_answers(where: str, doc: Any, options: list[str], k: int) -> None:
    """Refuse questions whose document marks several of the options as right, as that of truthfulqa_mc2 does."""
    lists = [targets for targets in doc.values() if isinstance(targets, dict)] if isinstance(doc, dict) else []
    for targets in lists:
        choices, labels = targets.get("choices"), targets.get("labels")
        if not (isinstance(choices, list) and isinstance(labels, list) and len(choices) == len(labels) == k):
            continue
        same = not options or [str(choice).strip() for choice in choices] == [option.strip() for option in options]
        if same and (right := sum(label == 1 for label in labels)) != 1:
            raise InputError(where, expected="one right option", got=f"{right} of {k} in its doc", fix=SEVERAL_RIGHT)


def _check_accuracy(where: str, acc: Any, scores: list[float], right: int) -> None:
    """Refuse samples whose own accuracy is not that of the likeliest option: several of their options may be right."""
    if acc is None or (isinstance(acc, bool | int | float) and acc == (int(np.argmax(scores)) == right)):
        return
    raise InputError(
        where,
        expected=f"acc {int(int(np.argmax(scores)) == right)}, with option {right} as the only right one",
        got=f"acc {acc:.3g}" if isinstance(acc, int | float) else f"acc '{str(acc)[:20]}'",
        fix=SEVERAL_RIGHT,
    )


def _arguments(sample: dict[str, Any]) -> list[tuple[str, str]]:
    """Context and continuation of every request: lists, or in newer files gen_args_0: {arg_0: ..., arg_1: ...}."""
    arguments = sample.get("arguments")
    listed = list(arguments.values()) if isinstance(arguments, dict) else arguments
    requests = listed if isinstance(listed, list) else []
    pairs = [list(request.values()) if isinstance(request, dict) else request for request in requests]
    if not all(isinstance(pair, list) and len(pair) > 1 for pair in pairs):
        return []
    return [(str(pair[0]), str(pair[1])) for pair in pairs]


def _right(where: str, sample: dict[str, Any], field: str, scores: list[float], options: list[str]) -> int:
    """The number of the right option: by its number or text in the field, else by whether the likeliest was right."""
    target = _single_target(where, field, sample.get(field), options)
    text = str(target).strip()
    named = _match_options(target, text, len(scores), options)
    if len(named) == 1:
        return named[0]
    likeliest, acc = int(np.argmax(scores)), sample.get("acc")
    if acc == 1 and (not named or likeliest in named):
        return likeliest
    others = [i for i in named or range(len(scores)) if i != likeliest]
    if acc == 0 and len(others) == 1:
        return others[0]
    got, fix = f"{field} '{text[:40]}'", "correct the line"
    if named:
        got += ", which is the number of one option and the text of another"
        fix = f"log acc with the samples, or write the number of the right option as a number in {field}"
    raise InputError(where, expected=f"which of {len(scores)} options is right", got=got, fix=fix)


def _single_target(where: str, field: str, target: Any, options: list[str]) -> Any:
    """The only entry of a list such as [1] or "[1]"; lists of several are refused, other targets stay."""
    if isinstance(target, str) and LISTED.fullmatch(target.strip()) and target.strip() not in map(str.strip, options):
        target = [int(number) for number in re.findall(r"\d+", target)]
    if not isinstance(target, list):
        return target
    if len(target) != 1:
        got = f"{field} {str(target)[:40]}"
        raise InputError(where, expected="one right option", got=got, fix=SEVERAL_RIGHT)
    return target[0]


def _match_options(target: Any, text: str, k: int, options: list[str]) -> list[int]:
    """The options that a target may mean: one, none, or two where "1" is a number as well as the text of another.

    A number that is not text can only be the number of an option.
    """
    numbered = isinstance(target, str | int) and text.isdecimal() and len(text) < 10 and int(text) < k
    by_number = [int(text)] if numbered else []
    if by_number and not isinstance(target, str):
        return by_number
    same = [i for i, option in enumerate(options) if option.strip() == text]
    return list(dict.fromkeys(by_number + (same if len(same) == 1 else [])))
