"""Questions that the names of models ask, answered by pairs on the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.maps.map import Map
from calibrant.core.statistics.fewest_rows import FEWEST_ROWS
from calibrant.core.statistics.multiple_tests import holm
from calibrant.measuring.answer_table import Bools
from calibrant.measuring.model_noise import (
    MEASURES,
    Answers,
    BoardMeasure,
    ModelNoise,
    QuestionDraws,
    measure_models,
)
from calibrant.measuring.rank_groups import Contrast, contrast
from calibrant.reporting.board.board import BoardAnswer, BoardSettings, Effect, State, Verdict
from calibrant.reporting.board.name_pairs import families_by_size, pairs_by_ending

AFTER = "ece_after"
ORDER = ("ece", AFTER, "auroc_correct", "accuracy", "answered")


@dataclass(frozen=True)
class MeasuredAnswers:
    """One confidence of all models: before the repair on all questions, after it on the judged half."""

    answers: Mapping[State, Answers]
    maps: tuple[Map | None, ...]
    noise: Mapping[State, Mapping[BoardMeasure, ModelNoise]]
    judged: ModelNoise  # the ECE before the repair, on the questions that it is judged on

    def of(self, measure: str) -> ModelNoise:
        """A measure before the repair, or the ECE after it."""
        if measure == AFTER:
            return self.noise["after"]["ece"]
        return next(noise for name, noise in self.noise["before"].items() if name == measure)


@dataclass(frozen=True)
class _Question:
    """A question before its p-values are corrected."""

    question: str
    how: str
    members: tuple[str, ...]
    effects: tuple[tuple[str, Contrast, Array], ...]  # measure, mean difference, difference of each pair


def answer_questions(
    models: Sequence[str], measured: Mapping[str, MeasuredAnswers], draws: QuestionDraws, settings: BoardSettings
) -> tuple[BoardAnswer, ...]:
    """Endings and sizes by the first confidence, and confidences against each other; p-values corrected over all."""
    first = next(iter(measured.values()))
    asked = [
        *_by_ending(models, first, settings),
        *_by_size(models, first, settings),
        *_by_confidence(models, measured, draws, settings),
    ]
    raw = np.array([effect[1].p_value for one in asked for effect in one.effects])
    corrected = iter(holm(raw))
    return tuple(
        BoardAnswer(
            question=one.question,
            how=one.how,
            members=one.members,
            effects=tuple(_effect(*effect, float(next(corrected)), settings.level) for effect in one.effects),
        )
        for one in asked
    )


def _effect(measure: str, difference: Contrast, pairs: Array, p: float, level: float) -> Effect:
    verdict: Verdict = "inconclusive"
    if p < 1 - level:
        verdict = "higher" if difference.value > 0 else "lower"
    return Effect(
        measure=measure,
        contrast=difference,
        p_corrected=p,
        verdict=verdict,
        same_sign=int((np.sign(pairs) == np.sign(difference.value)).sum()),
        pairs=len(pairs),
    )


def _by_ending(models: Sequence[str], measured: MeasuredAnswers, settings: BoardSettings) -> list[_Question]:
    number, asked = {name: i for i, name in enumerate(models)}, []
    usable = [name for i, name in enumerate(models) if np.isfinite(measured.of("ece").value[i])]
    for one in pairs_by_ending(usable):
        pairs = [(number[a], number[b]) for a, b in one.pairs]
        effects = []
        for measure in ORDER:
            noise = measured.of(measure)
            kept = [(a, b) for a, b in pairs if np.isfinite(noise.value[a]) and np.isfinite(noise.value[b])]
            if kept:
                weights = np.zeros(len(models))
                for a, b in kept:
                    weights[a] -= 1 / len(kept)
                    weights[b] += 1 / len(kept)
                each = np.array([noise.value[b] - noise.value[a] for a, b in kept])
                effects.append((measure, contrast(noise, weights, confidence=settings.level), each))
        how = f"with -{one.ending} minus without it, mean over the pairs"
        members = tuple(f"{b} minus {a}" for a, b in one.pairs)
        asked.append(_Question(one.question, how, members, tuple(effects)))
    return asked


def _by_size(models: Sequence[str], measured: MeasuredAnswers, settings: BoardSettings) -> list[_Question]:
    number = {name: i for i, name in enumerate(models)}
    usable = [name for i, name in enumerate(models) if np.isfinite(measured.of("ece").value[i])]
    families = families_by_size(usable)
    if not families:
        return []
    effects = []
    for measure in ORDER:
        noise = measured.of(measure)
        kept = [f for f in families if all(np.isfinite(noise.value[number[m]]) for m in f.models)]
        if kept:
            weights, each = np.zeros(len(models)), []
            for family in kept:
                of = [number[m] for m in family.models]
                weights[of] += np.array(family.slopes) / len(kept)
                each.append(float(np.array(family.slopes) @ noise.value[of]))
            effects.append((measure, contrast(noise, weights, confidence=settings.level), np.array(each)))
    members = tuple(f"{f.name}: {', '.join(f'{size:g}B' for size in f.sizes)}" for f in families)
    how = "change by each doubling of the size, mean over families"
    return [_Question("Does size change it?", how, members, tuple(effects))]


def _by_confidence(
    models: Sequence[str], measured: Mapping[str, MeasuredAnswers], draws: QuestionDraws, settings: BoardSettings
) -> list[_Question]:
    """Confidences of the same model, on the answers that have all of them."""
    columns = list(measured)
    if len(columns) < 2:
        return []
    common = np.logical_and.reduce([one.answers["before"].used for one in measured.values()])
    repaired = np.logical_and.reduce([one.answers["after"].used for one in measured.values()])
    able = np.flatnonzero(repaired.sum(axis=1) >= FEWEST_ROWS)
    if not len(able):
        return []
    noise: dict[str, dict[str, ModelNoise]] = {}
    for column, one in measured.items():
        before = _measured_on(one.answers["before"], able, common, draws, settings, MEASURES)
        noise[column] = {str(name): values for name, values in before.items()}
        noise[column][AFTER] = _measured_on(one.answers["after"], able, repaired, draws, settings, ("ece",))["ece"]
    asked = []
    for x, b in enumerate(columns):
        for a in columns[:x]:
            effects = []
            for measure in ORDER:
                if measure == "accuracy":  # the same answers
                    continue
                old, new = noise[a][measure], noise[b][measure]
                kept = np.flatnonzero(np.isfinite(old.value) & np.isfinite(new.value))
                if len(kept):
                    both = joined_noise(old.at(kept), new.at(kept))
                    weights = np.repeat([-1.0, 1.0], len(kept)) / len(kept)
                    each = new.value[kept] - old.value[kept]
                    effects.append((measure, contrast(both, weights, confidence=settings.level), each))
            how = (
                f"{b} minus {a}, mean over {len(able)} models that have all of {', '.join(columns)}, on common answers"
            )
            members = tuple(models[int(i)] for i in able)
            asked.append(_Question(f"Is {b} a better confidence than {a}?", how, members, tuple(effects)))
    return asked


def _measured_on(
    answers: Answers,
    models: Ints,
    used: Bools,
    draws: QuestionDraws,
    settings: BoardSettings,
    measures: tuple[BoardMeasure, ...],
) -> Mapping[BoardMeasure, ModelNoise]:
    """Some models on some of their answers."""
    part = Answers(answers.confidence[models], answers.hits[models], used[models])
    return measure_models(
        part,
        draws,
        bins=settings.bins,
        max_error=settings.max_error,
        confidence=settings.level,
        measures=measures,
    )


def joined_noise(a: ModelNoise, b: ModelNoise) -> ModelNoise:
    """Two sets of models side by side; the same draws weigh the same questions alike."""
    return ModelNoise(
        value=np.concatenate([a.value, b.value]),
        low=np.concatenate([a.low, b.low]),
        high=np.concatenate([a.high, b.high]),
        straight=np.concatenate([a.straight, b.straight], axis=1),
        kinked=np.concatenate([a.kinked, b.kinked], axis=1),
        resampled=a.resampled or b.resampled,
    )
