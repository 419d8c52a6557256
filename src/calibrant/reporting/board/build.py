"""`board`: read answers of several models, measure, repair, rank, and answer the questions their names ask."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.config.bounds import share_inside
from calibrant.core.curves.binning import check_bins, equal_width_edges
from calibrant.core.io.missing import MissingPolicy
from calibrant.core.statistics.bootstrap import check_confidence
from calibrant.core.statistics.estimate import Estimate, subtract
from calibrant.core.statistics.fewest_rows import FEWEST_ROWS, too_few_rows
from calibrant.core.text import number_format as fmt
from calibrant.measuring.answer_table import AnswerTable, Bools, ConfidenceCounts, read_answers
from calibrant.measuring.model_noise import (
    DIRECTION,
    MEASURES,
    Answers,
    QuestionDraws,
    accuracy,
    auroc,
    bins_of_scores,
    gap_influence,
    linear_estimates,
    measure_models,
    straight_influence,
)
from calibrant.measuring.rank_groups import Ranking, rank_models
from calibrant.repairing.chain import parse_chain
from calibrant.reporting.board.answers import MeasuredAnswers, answer_questions
from calibrant.reporting.board.board import (
    Board,
    BoardBin,
    BoardModel,
    BoardSettings,
    ConfidenceBoard,
    Contrast,
    GroupAverage,
    RankingFacts,
    Score,
    State,
    Transfer,
)
from calibrant.reporting.board.repair import judged_half, repair
from calibrant.reporting.board.transfer import between_groups, between_models
from calibrant.reporting.provenance import hash_file, package_versions, today

CALIBRATOR = "isotonic"
GROUP_MEASURES = ("ece", "gap", "auroc_correct", "accuracy")
FEWEST_IN_GROUP = 50  # answers of a model to a group of questions
FEW_VALUES = 30  # distinct confidences; a note says where there are fewer

OnStep = Callable[[int, int], None]  # steps done, of how many


def board(
    source: Any,
    *,
    model: str = "model",
    confidence: str | Sequence[str] = "confidence",
    correct: str = "correct",
    group: str | None = None,
    id: str | None = None,
    missing: MissingPolicy = "drop",
    calibrator: str = CALIBRATOR,
    bins: int = 15,
    max_error: float = 0.05,
    level: float = 0.95,
    seed: int = 0,
    title: str | None = None,
    command: str | None = None,
    progress: OnStep | None = None,
) -> Board:
    """Rank models that answered the same questions, in a table with one row for each model and question.

    `source` is a Parquet, CSV or JSONL file, or a polars or pandas frame. The first confidence ranks; further ones are
    compared with it. Rows are paired by the column `id`. Every question counts once: there are no weights and no
    clusters here.

    >>> rng = np.random.default_rng(1)
    >>> rows = {"model": np.repeat(["a", "b"], 400), "id": np.tile(np.arange(400), 2)}
    >>> rows |= {"confidence": np.repeat([0.8, 0.9], 400), "correct": rng.random(800) < 0.8}
    >>> [m.name for m in board(rows).boards[0].ordered("ece")]
    ['a', 'b']
    """
    check_bins(bins)
    check_confidence(level)
    share_inside("max_error", max_error)
    if calibrator != "auto":
        parse_chain(calibrator)
    columns = (confidence,) if isinstance(confidence, str) else tuple(confidence)
    table = read_answers(
        source, model=model, confidence=columns, correct=correct, group=group, question=id, missing=missing
    )
    settings = BoardSettings(calibrator=calibrator, bins=bins, max_error=max_error, level=level, seed=seed)
    draws, judged = QuestionDraws(table.questions, seed), judged_half(table.questions, seed)
    steps = _Steps(len(table.models) * (3 * len(columns) + 2), progress)
    measured = {column: _measure(table, column, draws, judged, settings, steps) for column in columns}
    file = Path(source) if isinstance(source, str | Path) and Path(source).is_file() else None
    return Board(
        title=title or "Which models know what they know?",
        model_column=model,
        group_column=group,
        questions=table.questions,
        rows=sum(model_counts.rows for model_counts in table.counts[columns[0]]),
        policy=table.policy,
        settings=settings,
        boards=tuple(_one_board(table, column, measured[column], draws, settings) for column in columns),
        answers=answer_questions(table.models, measured, draws, settings),
        transfers=_transfers(table, measured[columns[0]], draws, judged, settings, steps),
        notes=(
            *((table.left_out,) if table.left_out else ()),
            *(note for column in columns for note in _notes(column, table.models, table.counts[column])),
        ),
        definitions=_definitions(settings),
        command=command,
        source=file.name if file else None,
        sha256=hash_file(file) if file else None,
        date=today(),
        versions=package_versions(),
    )


@dataclass
class _Steps:
    """Count the steps done, and report them to a callback."""

    total: int
    on_step: OnStep | None
    done: int = 0

    def __call__(self, steps: int) -> None:
        self.done += steps
        if self.on_step:
            self.on_step(self.done, self.total)


def _measure(
    table: AnswerTable, column: str, draws: QuestionDraws, judged: Bools, settings: BoardSettings, steps: _Steps
) -> MeasuredAnswers:
    """Measure all models with one confidence, before and after the repair."""
    before = Answers(table.confidence[column], table.correct, table.used(column))
    repaired = repair(before, judged, settings.calibrator, steps)
    options: dict[str, Any] = {
        "bins": settings.bins,
        "max_error": settings.max_error,
        "on_model": steps,
    }
    return MeasuredAnswers(
        answers={"before": before, "after": repaired.answers},
        maps=repaired.maps,
        estimates={
            "before": measure_models(before, draws, **options),
            "after": measure_models(repaired.answers, draws, **options),
        },
        judged=measure_models(before.among(judged), draws, bins=settings.bins, measures=("ece",))["ece"],
    )


def _one_board(
    table: AnswerTable, column: str, measured: MeasuredAnswers, draws: QuestionDraws, settings: BoardSettings
) -> ConfidenceBoard:
    states: tuple[State, ...] = ("before", "after")
    rankings = {
        state: {m: rank_models(measured.estimates[state][m], DIRECTION[m], confidence=settings.level) for m in MEASURES}
        for state in states
    }
    averages, by_group = _groups(table, measured.answers["before"], draws, settings)
    models = []
    for i, name in enumerate(table.models):
        answers, counts = measured.answers["before"], table.counts[column][i]
        rows = np.flatnonzero(answers.used[i])
        change = subtract(measured.judged[i], measured.estimates["after"]["ece"][i])
        models.append(
            BoardModel(
                name=name,
                counts=counts,
                says=float(answers.confidence[i, rows].mean()) if len(rows) else float("nan"),
                scores={
                    state: {
                        m: _score(measured.estimates[state][m][i], rankings[state][m], i, settings.level)
                        for m in MEASURES
                    }
                    for state in states
                },
                bins={state: _bins(measured.answers[state], i, settings.bins) for state in states},
                change=Contrast.from_estimate(change, settings.level) if np.isfinite(change.value) else None,
                by_group=by_group[i],
                reason=_reason(counts, len(rows)),
            )
        )
    facts = {state: {m: _facts(ranking) for m, ranking in rankings[state].items()} for state in states}
    return ConfidenceBoard(confidence=column, models=tuple(models), rankings=facts, groups=averages)


def _score(e: Estimate, ranking: Ranking, i: int, level: float) -> Score:
    low, high = e.limits(level)
    return Score(
        value=e.value,
        low=low,
        high=high,
        first=int(ranking.first[i]),
        last=int(ranking.last[i]),
        group=int(ranking.group[i]),
    )


def _facts(ranking: Ranking) -> RankingFacts:
    return RankingFacts(
        ranked=len(ranking.order),
        groups=ranking.groups,
        told_apart=ranking.told_apart,
        critical=ranking.critical,
        worse=tuple("".join("1" if is_worse else "0" for is_worse in line) for line in ranking.worse),
    )


def _bins(answers: Answers, i: int, bins: int) -> tuple[BoardBin, ...]:
    """The filled bins of one model."""
    rows = np.flatnonzero(answers.used[i])
    scores, correct = answers.confidence[i, rows], answers.correct[i, rows]
    bin_of, edges = bins_of_scores(scores, bins), equal_width_edges(bins)
    counts, says, right = (
        np.bincount(bin_of, weights, minlength=bins) for weights in (np.ones(len(rows)), scores, correct.astype(float))
    )
    return tuple(
        BoardBin(
            low=float(edges[b]),
            high=float(edges[b + 1]),
            rows=int(counts[b]),
            says=float(says[b] / counts[b]),
            right=float(right[b] / counts[b]),
        )
        for b in np.flatnonzero(counts)
    )


def _groups(
    table: AnswerTable, answers: Answers, draws: QuestionDraws, settings: BoardSettings
) -> tuple[tuple[GroupAverage, ...], list[dict[str, dict[str, float]]]]:
    """Each group of questions: means over models, models being fixed, and the values of every model."""
    by_model: list[dict[str, dict[str, float]]] = [{} for _ in table.models]
    averages = []
    for g, name in enumerate(table.groups):
        inside = table.group_of == g
        influence = {m: np.zeros(draws.n) for m in GROUP_MEASURES}
        values: dict[str, list[float]] = {m: [] for m in GROUP_MEASURES}
        for i in range(len(table.models)):
            rows = np.flatnonzero(answers.used[i] & inside)
            if len(rows) < FEWEST_IN_GROUP:
                continue
            scores, correct = answers.confidence[i, rows], answers.correct[i, rows].astype(np.float64)
            by_model[i][name] = {}
            for measure in GROUP_MEASURES:
                value, row_influence = _influence_of(measure, scores, correct, rows, draws.n, settings.bins)
                by_model[i][name][measure] = value
                if np.isfinite(value):
                    values[measure].append(value)
                    influence[measure] += row_influence
        means = {}
        for measure, model_values in values.items():
            if model_values:
                mean, shares = np.array([np.mean(model_values)]), influence[measure][None] / len(model_values)
                means[measure] = Contrast.from_estimate(linear_estimates(mean, shares, draws)[0], settings.level)
        averages.append(GroupAverage(group=name, questions=int(inside.sum()), means=means))
    return tuple(averages), by_model


def _influence_of(measure: str, scores: Array, correct: Array, rows: Ints, n: int, bins: int) -> tuple[float, Array]:
    if measure == "accuracy":
        return accuracy(scores, correct, rows, n)
    if measure == "auroc_correct":
        return auroc(scores, correct, rows, n)
    if measure == "gap":
        value, influence = gap_influence(scores - correct, np.zeros(len(rows), dtype=np.int64), rows, n, 1)
        return float(value[0]), influence[0]
    value, influence = gap_influence(scores - correct, bins_of_scores(scores, bins), rows, n, bins)
    return float(np.abs(value).sum()), straight_influence(value, influence)


def _transfers(
    table: AnswerTable,
    measured: MeasuredAnswers,
    draws: QuestionDraws,
    judged: Bools,
    settings: BoardSettings,
    steps: _Steps,
) -> tuple[Transfer, ...]:
    transfers, before = [], measured.answers["before"]
    options: dict[str, Any] = {"bins": settings.bins, "level": settings.level, "on_model": steps}
    if len(table.groups) > 1:
        transfers.append(
            between_groups(
                before, measured.maps, judged, table.group_of, table.groups, settings.calibrator, draws, **options
            )
        )
    transfers.append(between_models(before, measured.maps, judged, table.models, draws, **options))
    return tuple(transfer for transfer in transfers if np.isfinite(transfer.other))


def _reason(counts: ConfidenceCounts, used: int) -> str | None:
    """The reason why a model is not ranked; None where it is."""
    if counts.used == 0 and used == 0:
        return f"no confidence in any of {fmt.count(counts.rows, 'answer')}"
    return too_few_rows(used) if used < FEWEST_ROWS else None


def _notes(column: str, models: Sequence[str], counts: Sequence[ConfidenceCounts]) -> list[str]:
    """Notes on one column of confidences: missing ones, and values outside [0, 1]."""
    rows = sum(c.rows for c in counts)
    notes = []
    for problem, number in (
        ("have no confidence", [c.missing for c in counts]),
        ("have a confidence above 1", [c.above for c in counts]),
        ("have a confidence below 0", [c.below for c in counts]),
    ):
        if sum(number):
            affected = [i for i in np.argsort(number)[::-1] if number[i]]
            most = fmt.list_words([f"{models[i]} {number[i]:,}" for i in affected], most=3)
            notes.append(f"{column}: {sum(number):,} of {rows:,} answers {problem} ({most}).")
    if silent := [models[i] for i, c in enumerate(counts) if not c.used]:
        notes.append(f"{column}: not ranked, because no answer has a confidence: {fmt.list_words(silent, most=12)}.")
    if few := [c.distinct for c in counts if 0 < c.distinct < FEW_VALUES]:
        notes.append(
            f"{column}: {fmt.count(len(few), 'model')} of {len(models)} use fewer than {FEW_VALUES} different values "
            f"(median {int(np.median(few))}): a step of one value can move a share answered by much."
        )
    return notes


def _definitions(settings: BoardSettings) -> Mapping[str, str]:
    return {
        "ece": f"ECE of the confidence, {settings.bins} equal-width right-closed bins",
        "auroc_correct": "AUROC of correctness: chance that a right answer has more confidence than a wrong one",
        "accuracy": "share of right answers, among the answers that count",
        "answered": (
            f"largest share of answers that can be given, from the most confident down, with at most "
            f"{fmt.percent(settings.max_error, 0)} errors among them; the threshold is chosen on these very answers"
        ),
        "ece_after": (
            f"ECE after {settings.calibrator}, fitted for each model on one half of the questions, judged on the other"
        ),
        "gap": "mean confidence minus accuracy",
    }
