"""Samples of lm-evaluation-harness (`--log_samples`), as they are: questions with log-likelihoods of their options."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.assemble import assemble
from calibrant.core.errors import InputError
from calibrant.core.jsonl import json_objects
from calibrant.core.limits import check_unpacked
from calibrant.core.missing import settle
from calibrant.core.naming import Columns, Roles
from calibrant.core.predictions import Predictions

PER_OPTION = "Scores are the log-likelihoods of the options, as acc compares them."
PER_CHARACTER = "Scores are the log-likelihoods of the options divided by their number of characters, as in acc_norm."


@dataclass(frozen=True)
class Question:
    """The log-likelihood of every option, which one is right, and what else the line says."""

    scores: list[float]
    right: int
    sample: dict[str, Any]

    def known(self, name: str) -> Any:
        """A field of the sample, or of its document."""
        doc = self.sample.get("doc")
        return self.sample.get(name, doc.get(name) if isinstance(doc, dict) else None)


def is_lm_eval(file: Path, columns: Columns) -> bool:
    """Whether the first object is a logged sample, and nobody has said that it is something else."""
    if columns.score or columns.confidence or columns.correct:
        return False
    first = next((found for _, found in json_objects(file)), {})
    return "doc_id" in first and ("resps" in first or "filtered_resps" in first)


def read_lm_eval(file: Path, columns: Columns) -> Predictions:
    """Questions as choices: each row has the options of its question."""
    questions, empty, filters = list[Question](), 0, dict[str, None]()
    for number, sample in json_objects(file):
        filters[str(sample.get("filter", ""))] = None
        if str(sample.get("filter", "")) != next(iter(filters)):
            continue  # the same questions again, as another filter of the harness sees them
        if not (sample.get("filtered_resps") or sample.get("resps")):
            empty += 1
            continue
        questions.append(_question(f"{file}, line {number}", sample, columns))
    missing = settle(str(file), "score", empty, empty + len(questions), columns.missing)
    arrays = _arrays(file, questions)
    for array, told in (("ids", columns.id or "doc_id"), ("groups", columns.group), ("clusters", columns.cluster)):
        if told not in (None, "none"):
            arrays[array] = np.array([str(value) for value in _field(file, questions, str(told))])
    if columns.weight not in (None, "none"):
        arrays["weights"] = np.array(_field(file, questions, str(columns.weight)))
    notes = [PER_CHARACTER if columns.per_character else PER_OPTION]
    if len(filters) > 1:
        notes.append(f"Of the filters {', '.join(filters)} the first was read.")
    roles = Roles("logits", "resps", dict.fromkeys(arrays, ""))
    return assemble(str(file), arrays, roles, columns, few_rows=True, missing=missing, notes=tuple(notes))


def _arrays(file: Path, questions: list[Question]) -> dict[str, Any]:
    k = max(len(question.scores) for question in questions)
    check_unpacked(file, len(questions) * k * 8)
    logits, mask = np.zeros((len(questions), k)), np.zeros((len(questions), k), dtype=bool)
    for row, question in enumerate(questions):
        logits[row, : len(question.scores)] = question.scores
        mask[row, : len(question.scores)] = True
    return {"logits": logits, "mask": mask, "labels": np.array([question.right for question in questions])}


def _field(file: Path, questions: list[Question], name: str) -> list[Any]:
    values = [question.known(name) for question in questions]
    if gaps := sum(value is None for value in values):
        got = f"none in {gaps:,} of {len(values):,} samples"
        raise InputError(f"{file}, {name}", expected="a field of every sample or of its doc", got=got, fix="check it")
    return values


def _question(where: str, sample: dict[str, Any], columns: Columns) -> Question:
    responses = sample.get("filtered_resps") or sample["resps"]
    scores = [_score(where, response) for response in responses] if isinstance(responses, list) else []
    asked = _arguments(sample)
    if len(asked) == len(scores) and any(
        context for context, _ in asked
    ):  # acc_mutual_info asks without a question too
        there = [i for i, (context, _) in enumerate(asked) if context]
        scores, asked = [scores[i] for i in there], [asked[i] for i in there]
    if len(scores) < 2:
        got = f"{len(scores)}, so this is not multiple choice"
        raise InputError(where, expected="log-likelihoods of two options or more", got=got, fix="log another task")
    options = [text.removeprefix(" ") for _, text in asked]  # the space is the harness's own
    right = _right(where, sample, columns.label or "target", scores, options)
    if columns.per_character:
        if len(options) != len(scores):
            fix = "log the samples again, or leave out --per-character"
            raise InputError(where, expected="arguments, with the text of every option", got="none", fix=fix)
        scores = [score / max(1, len(text)) for score, text in zip(scores, options, strict=True)]
    return Question(scores, right, sample)


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
        raise InputError(where, expected="a log-likelihood of every option", got=got, fix=fix)
    return score


def _arguments(sample: dict[str, Any]) -> list[tuple[str, str]]:
    """Context and continuation of every request: lists, or in newer files gen_args_0: {arg_0: ..., arg_1: ...}."""
    given = sample.get("arguments")
    requests = list(given.values()) if isinstance(given, dict) else given if isinstance(given, list) else []
    pairs = [list(one.values()) if isinstance(one, dict) else one for one in requests]
    if not all(isinstance(pair, list) and len(pair) > 1 for pair in pairs):
        return []
    return [(str(pair[0]), str(pair[1])) for pair in pairs]


def _right(where: str, sample: dict[str, Any], field: str, scores: list[float], options: list[str]) -> int:
    """The number of the right option: as told, by its text, or by whether the likeliest option was right."""
    text = str(sample.get(field)).strip()
    told = _told(sample.get(field), text, len(scores), options)
    if len(told) == 1:
        return told[0]
    likeliest, acc = int(np.argmax(scores)), sample.get("acc")
    if acc == 1 and (not told or likeliest in told):
        return likeliest
    others = [i for i in told or range(len(scores)) if i != likeliest]
    if acc == 0 and len(others) == 1:
        return others[0]
    got, fix = f"{field} '{text[:40]}'", "correct the line"
    if told:
        got += ", which is the number of one option and the text of another"
        fix = f"log acc with the samples, or write the number of the right option as a number in {field}"
    raise InputError(where, expected=f"which of {len(scores)} options is right", got=got, fix=fix)


def _told(target: Any, text: str, k: int, options: list[str]) -> list[int]:
    """The options that a target may mean: one, none, or two where "1" is a number as well as the text of another.

    A number that is not text can only be the number of an option.
    """
    numbered = isinstance(target, str | int) and text.isdecimal() and len(text) < 10 and int(text) < k
    by_number = [int(text)] if numbered else []
    if by_number and not isinstance(target, str):
        return by_number
    same = [i for i, option in enumerate(options) if option.strip() == text]
    return list(dict.fromkeys(by_number + (same if len(same) == 1 else [])))
