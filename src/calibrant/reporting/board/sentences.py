"""Sentences of a board: titles of columns, the headline, and one sentence for each finding."""

from collections.abc import Sequence

import numpy as np

from calibrant.core.text import number_format as fmt
from calibrant.reporting.board.board import Board, BoardModel, ConfidenceBoard, Contrast, Effect, Transfer

MOST_COUNTED = 0.9  # share of answers that count; a model with fewer is named together with that share
SHARES = ("ece", "ece_after", "accuracy", "answered", "gap")  # printed in percent


def title_of(measure: str, board: Board) -> str:
    """The short name of a column."""
    if measure == "answered":
        return f"answered at {fmt.percent(board.settings.max_error, 0)} error"
    return {"ece": "ECE", "auroc_correct": "AUROC", "accuracy": "accuracy", "ece_after": "ECE after repair"}.get(
        measure, measure
    )


def value(measure: str, number: float) -> str:
    """Format a number in the unit of its measure."""
    if number != number:
        return fmt.UNDEFINED
    return f"{100 * number:.1f} %" if measure in SHARES else f"{number:.3f}"


def interval(measure: str, low: float, high: float) -> str:
    if low != low:
        return ""
    return f"{100 * low:.1f} to {100 * high:.1f}" if measure in SHARES else f"{low:.3f} to {high:.3f}"


def change(measure: str, difference: Contrast) -> str:
    """Format a difference and its interval; differences of shares are in points."""
    scale, digits = (100, 1) if measure in SHARES else (1, 3)
    numbers = (difference.value, *sorted((difference.low, difference.high)))
    first, low, high = (f"{round(scale * number, digits) + 0.0:+.{digits}f}" for number in numbers)
    return f"{first}{' points' if measure in SHARES else ''} [{low}, {high}]"


def headline(board: Board) -> str:
    """The first sentence of the page."""
    first = board.boards[0]
    best = first.ordered("ece")
    if not best:
        return "No model can be ranked."
    top = best[0].scores["before"]["ece"]
    alike = [m for m in best[1:] if m.scores["before"]["ece"].group == top.group]
    whom = f", and {fmt.count(len(alike), 'model')} cannot be told apart from it" if alike else ""
    text = f"Of {len(best)} models {best[0].name} is calibrated best: it is off by {value('ece', top.value)} on average"
    counted = _share_counted(best[0])
    if counted >= MOST_COUNTED:
        return f"{text}{whom}."
    others = [m for m in best if _share_counted(m) >= MOST_COUNTED]
    left = f"{text}{whom}, but only {fmt.percent(counted, 0)} of its answers have a confidence."
    if not others:
        return left
    other = value("ece", others[0].scores["before"]["ece"].value)
    return (
        f"{left} Among models with one in {fmt.percent(MOST_COUNTED, 0)} of answers it is {others[0].name} ({other})."
    )


def _share_counted(m: BoardModel) -> float:
    return m.counts.used / m.counts.rows


def lead(board: Board) -> list[str]:
    """The sentences beside the headline."""
    first = board.boards[0]
    ranked = first.ordered("ece")
    if not ranked:
        return []
    sentences = [_sure(ranked, first.confidence)]
    for measure in ("auroc_correct", "accuracy"):
        order = first.ordered("auroc_correct" if measure == "auroc_correct" else "accuracy")
        if order:
            score = order[0].scores["before"]["auroc_correct" if measure == "auroc_correct" else "accuracy"]
            merit = "ranks right answers above wrong ones best" if measure == "auroc_correct" else "is right most often"
            sentences.append(f"{order[0].name} {merit} ({title_of(measure, board)} {value(measure, score.value)}).")
    changes = [(m.scores["after"]["ece"].value, m.change) for m in ranked if m.change is not None]
    if changes:
        better = sum(difference.high < 0 for _, difference in changes)
        after = float(np.mean([v for v, _ in changes]))
        before = after - float(np.mean([difference.value for _, difference in changes]))
        sentences.append(
            f"A repair fitted on half of the questions ({board.settings.calibrator}) takes the mean ECE on the other "
            f"half from {value('ece', before)} to {value('ece', after)}, and lowers it beyond noise for {better} of "
            f"{len(changes)} models."
        )
    return sentences


def _sure(ranked: Sequence[BoardModel], confidence: str) -> str:
    over = sum(m.says > m.scores["before"]["accuracy"].value for m in ranked)
    return f"By the confidence “{confidence}”, {over} of {len(ranked)} models say more than they are right."


def apart_sentence(column_board: ConfidenceBoard, board: Board) -> str:
    """A sentence on how many models the rankings tell apart."""
    parts = [
        f"{title_of(measure, board)} {fmt.count(facts.groups, 'group')} "
        f"({fmt.percent(facts.told_apart, 0)} of pairs told apart)"
        for measure, facts in column_board.rankings["before"].items()
        if facts.ranked > 1
    ]
    return "; ".join(parts) + "." if parts else ""


def effect_words(effect: Effect) -> str:
    """The verdict on one effect, with the pairs that agree in direction."""
    agree = f"{effect.same_sign} of {effect.pairs}" if effect.pairs > 1 else ""
    return f"{effect.verdict}{f' ({agree})' if agree and effect.verdict != 'inconclusive' else ''}"


def transfer_sentence(t: Transfer, group: str) -> str:
    source = group if t.across == "groups" else "model"
    pooled = "" if t.pooled is None else f", {value('ece', t.pooled)} by its answers to all of them"
    return (
        f"From {source} to {source}: mean ECE {value('ece', t.none)} without a repair, {value('ece', t.own)} by its "
        f"own {source}{pooled}, {value('ece', t.other)} by another {source}. A borrowed repair changes it by "
        f"{change('ece', t.other_minus_none)} against none and by {change('ece', t.other_minus_own)} against its "
        f"own; it helps in {fmt.percent(t.helps, 0)} of the cases."
    )


def method_sentences(board: Board) -> list[str]:
    """Sentences on how the numbers were computed."""
    level = fmt.level(board.settings.level)
    policy = {
        "drop": "An answer without a confidence from 0 to 1 is left out of that model's numbers",
        "count_as_wrong": "An answer without a confidence from 0 to 1 counts as wrong, with confidence 0",
        "error": "Every answer has a confidence from 0 to 1",
    }[board.policy]
    return [
        f"{policy}; a model that leaves out hard questions looks better than it is, so read the share that counts.",
        f"Intervals hold {level} each. Differences are paired by question: every draw of noise weighs the questions "
        "alike for all models. Statements that one model is worse than another hold all at once within a ranking "
        f"({level}, step-down over all pairs).",
        "A group is the best model that is left and all that are not significantly worse than it; ranks such as 3 to 7 "
        "are those that a model may have. Models are fixed: intervals say what other questions of this kind would "
        "change, not what other models would.",
        "Answers to questions are means over pairs with p-values corrected over all of them (Holm).",
        f"Repairs ({board.settings.calibrator}) are fitted on a random half of the questions and judged on the other "
        "half; ranks and numbers after the repair are of that half.",
    ]
