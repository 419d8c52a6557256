"""Questions that the names of models ask, answered by pairs on the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.maps.map import Map
from calibrant.core.statistics.estimate import Estimate, combine
from calibrant.core.statistics.fewest_rows import FEWEST_ROWS
from calibrant.core.statistics.multiple_tests import holm
from calibrant.measuring.answer_table import Bools
from calibrant.measuring.model_noise import (
    MEASURES,
    Answers,
    BoardMeasure,
    QuestionDraws,
    measure_models,
)
from calibrant.reporting.board.board import BoardAnswer, BoardSettings, Contrast, Effect, State, Verdict
from calibrant.reporting.board.name_pairs import families_by_size, pairs_by_ending

AFTER = "ece_after"
ORDER = ("ece", AFTER, "auroc_correct", "accuracy", "answered")


@dataclass(frozen=True)
class MeasuredAnswers:
    """Measures of all models with one confidence: before the repair on all questions, after it on the judged half."""

    answers: Mapping[State, Answers]
    maps: tuple[Map | None, ...]
    estimates: Mapping[State, Mapping[BoardMeasure, list[Estimate]]]
    judged: list[Estimate]  # the ECE before the repair, on the questions that it is judged on


@dataclass(frozen=True)
class _Question:
    """A question before its p-values are corrected."""

    question: str
    how: str
    members: tuple[str, ...]
    effects: tuple[tuple[str, Estimate, Array], ...]  # measure, mean difference, difference of each pair


def answer_questions(
    models: Sequence[str], measured: Mapping[str, MeasuredAnswers], draws: QuestionDraws, settings: BoardSettings
) -> tuple[BoardAnswer, ...]:
    """Answer what names ask, by endings, by sizes and between confidences; p-values corrected over all questions."""
    first = next(iter(measured.values()))
    questions = [
        *_by_ending(models, first, draws, settings),
        *_by_size(models, first, draws, settings),
        *_by_confidence(models, measured, draws, settings),
    ]
    raw = np.array([effect[1].p_value() for question in questions for effect in question.effects])
    corrected = iter(holm(raw))
    return tuple(
        BoardAnswer(
            question=question.question,
            how=question.how,
            members=question.members,
            effects=tuple(_effect(*effect, float(next(corrected)), settings.level) for effect in question.effects),
        )
        for question in questions
    )


def _effect(measure: str, difference: Estimate, pairs: Array, p: float, level: float) -> Effect:
    verdict: Verdict = "inconclusive"
    if p < 1 - level:
        verdict = "higher" if difference.value > 0 else "lower"
    return Effect(
        measure=measure,
        contrast=Contrast.from_estimate(difference, level),
        p_corrected=p,
        verdict=verdict,
        same_sign=int((np.sign(pairs) == np.sign(difference.value)).sum()),
        pairs=len(pairs),
    )


@dataclass(frozen=True)
class _Family:
    """Models that are compared on their common questions, with weights that add up to 0."""

    members: tuple[int, ...]
    weights: tuple[float, ...]


def _by_ending(
    models: Sequence[str], measured: MeasuredAnswers, draws: QuestionDraws, settings: BoardSettings
) -> list[_Question]:
    number, questions = {name: i for i, name in enumerate(models)}, []
    for named in pairs_by_ending(_names_ranked(models, measured)):
        pairs = [_Family((number[a], number[b]), (-1.0, 1.0)) for a, b in named.pairs]
        how = f"with -{named.ending} minus without it, mean over pairs, each on its common answers"
        members = tuple(f"{b} minus {a}" for a, b in named.pairs)
        questions.append(_Question(named.question, how, members, _compare(pairs, measured, draws, settings)))
    return questions


def _by_size(
    models: Sequence[str], measured: MeasuredAnswers, draws: QuestionDraws, settings: BoardSettings
) -> list[_Question]:
    number = {name: i for i, name in enumerate(models)}
    families = families_by_size(_names_ranked(models, measured))
    if not families:
        return []
    slopes = [_Family(tuple(number[m] for m in f.models), f.slopes) for f in families]
    members = tuple(f"{f.name}: {', '.join(f'{size:g}B' for size in f.sizes)}" for f in families)
    how = "change by each doubling of the size, mean over families, each on its common answers"
    return [_Question("Does size change it?", how, members, _compare(slopes, measured, draws, settings))]


def _names_ranked(models: Sequence[str], measured: MeasuredAnswers) -> list[str]:
    return [name for i, name in enumerate(models) if np.isfinite(measured.estimates["before"]["ece"][i].value)]


def _compare(
    families: Sequence[_Family], measured: MeasuredAnswers, draws: QuestionDraws, settings: BoardSettings
) -> tuple[tuple[str, Estimate, Array], ...]:
    """The mean of a weighted sum over families, for each measure; a family without all its values is left out."""
    before, after = (
        _on_common(answers, families) for answers in (measured.answers["before"], measured.answers["after"])
    )
    estimates = _measure(before, draws, settings, MEASURES)
    estimates[AFTER] = _measure(after, draws, settings, ("ece",))["ece"]
    starts = np.cumsum([0, *(len(f.members) for f in families)])
    effects = []
    for measure in ORDER:
        values = np.array([e.value for e in estimates[measure]])
        family_values = np.array(
            [f.weights @ values[s : s + len(f.members)] for f, s in zip(families, starts[:-1], strict=True)]
        )
        complete = np.isfinite(family_values)
        if complete.any():
            weights = np.concatenate(
                [np.array(f.weights) * (k / complete.sum()) for f, k in zip(families, complete, strict=True)]
            )
            effects.append((measure, combine(estimates[measure], weights), family_values[complete]))
    return tuple(effects)


def _on_common(answers: Answers, families: Sequence[_Family]) -> Answers:
    """The members of all families one after another, each with the questions that its whole family has."""
    members = [i for family in families for i in family.members]
    common = [answers.used[list(family.members)].all(axis=0) for family in families for _ in family.members]
    return Answers(answers.confidence[members], answers.correct[members], np.array(common))


def _by_confidence(
    models: Sequence[str], measured: Mapping[str, MeasuredAnswers], draws: QuestionDraws, settings: BoardSettings
) -> list[_Question]:
    """Confidences of the same model, on the answers that have all of them."""
    columns = list(measured)
    if len(columns) < 2:
        return []
    common = np.logical_and.reduce([column.answers["before"].used for column in measured.values()])
    repaired = np.logical_and.reduce([column.answers["after"].used for column in measured.values()])
    able = np.flatnonzero(repaired.sum(axis=1) >= FEWEST_ROWS)
    if not len(able):
        return []
    estimates: dict[str, dict[str, list[Estimate]]] = {}
    for column, column_answers in measured.items():
        before = _measure(_some(column_answers.answers["before"], able, common), draws, settings, MEASURES)
        estimates[column] = before
        after = _some(column_answers.answers["after"], able, repaired)
        estimates[column][AFTER] = _measure(after, draws, settings, ("ece",))["ece"]
    questions = []
    for x, b in enumerate(columns):
        for a in columns[:x]:
            effects = []
            for measure in ORDER:
                if measure == "accuracy":  # the same answers
                    continue
                pairs = [
                    (old, new)
                    for old, new in zip(estimates[a][measure], estimates[b][measure], strict=True)
                    if np.isfinite(old.value) and np.isfinite(new.value)
                ]
                if pairs:
                    both = [e for pair in pairs for e in pair]
                    change = combine(both, np.tile([-1.0, 1.0], len(pairs)) / len(pairs))
                    effects.append((measure, change, np.array([new.value - old.value for old, new in pairs])))
            how = (
                f"{b} minus {a}, mean over {len(able)} models that have all of {', '.join(columns)}, on common answers"
            )
            members = tuple(models[int(i)] for i in able)
            questions.append(_Question(f"Is {b} a better confidence than {a}?", how, members, tuple(effects)))
    return questions


def _some(answers: Answers, models: Ints, used: Bools) -> Answers:
    """The answers of some models, as far as they are used."""
    return Answers(answers.confidence[models], answers.correct[models], used[models])


def _measure(
    answers: Answers, draws: QuestionDraws, settings: BoardSettings, measures: tuple[BoardMeasure, ...]
) -> dict[str, list[Estimate]]:
    estimates = measure_models(answers, draws, bins=settings.bins, max_error=settings.max_error, measures=measures)
    return {str(name): models for name, models in estimates.items()}
