"""A board as Markdown and as CSV."""

from typing import Any

from calibrant.core.text import number_format as fmt
from calibrant.core.text.table import csv_table, markdown_table
from calibrant.core.text.table import escape_markdown as escape
from calibrant.measuring.model_noise import MEASURES
from calibrant.reporting.board import sentences as say
from calibrant.reporting.board.board import Board, ConfidenceBoard, Score, State

STATES: tuple[State, ...] = ("before", "after")
GROUP_COLUMNS = ("ece", "gap", "auroc_correct", "accuracy")


def csv(board: Board) -> str:
    """One line for each confidence, state and model."""
    rows = records(board)
    return csv_table(list(rows[0]), [["" if cell is None else cell for cell in row.values()] for row in rows])


def records(board: Board) -> list[dict[str, Any]]:
    """The cells of one line for each confidence, state and model; None where a number is undefined."""
    counted = ("rows", "used", "missing", "above", "below", "distinct")
    rows = []
    for column_board in board.boards:
        for state in STATES:
            for m in column_board.models:
                row: dict[str, Any] = {"confidence": column_board.confidence, "repair": state, "model": m.name}
                row |= {name: getattr(m.counts, name) for name in counted} | {"says": _number(m.says)}
                for measure in MEASURES:
                    row |= {f"{measure}{part}": cell for part, cell in _cells(m.scores[state][measure]).items()}
                rows.append(row)
    return rows


def _cells(s: Score) -> dict[str, float | None]:
    numbers = {"": s.value, "_low": s.low, "_high": s.high}
    ranks = {"_first": s.first, "_last": s.last, "_group": s.group}
    return {part: _number(n) for part, n in numbers.items()} | {
        part: n if s.group else None for part, n in ranks.items()
    }


def _number(number: float) -> float | None:
    return None if number != number else number


def markdown(board: Board) -> str:
    parts = [
        f"# {escape(board.title)}",
        f"**{escape(say.headline(board))}**",
        escape(" ".join(say.lead(board))),
    ]
    parts += [f"- {escape(note)}" for note in board.notes]
    for column_board in board.boards:
        parts += _ranking(board, column_board)
    parts += _answers(board) + _groups(board) + _transfers(board)
    parts += ["## How", "\n".join(f"- {escape(line)}" for line in say.method_sentences(board))]
    parts.append(
        "\n".join(f"- {say.title_of(name, board)}: {escape(text)}" for name, text in board.definitions.items())
    )
    if board.command:
        parts.append(f"`{board.command}`, seed {board.settings.seed}, {board.date}.")
    joined = "\n\n".join(part for part in parts if part)
    return joined.replace("\n\n- ", "\n- ").replace(".\n- ", ".\n\n- ", 1) + "\n"


def _ranking(board: Board, column_board: ConfidenceBoard) -> list[str]:
    head = ["rank", "model", *(say.title_of(m, board) for m in MEASURES), "ECE after repair", "counted"]
    rows = []
    for m in column_board.ordered("ece"):
        s = m.scores["before"]
        cells = [
            f"{say.value(x, s[x].value)} ({say.interval(x, s[x].low, s[x].high)}) {_place(s[x])}" for x in MEASURES
        ]
        after = say.value("ece", m.scores["after"]["ece"].value)
        rows.append([_ranks(s["ece"]), m.name, *cells, after, fmt.percent(m.counts.used / m.counts.rows)])
    left = [f"- {escape(m.name)}: not ranked, {m.reason}." for m in column_board.models if m.reason]
    return [
        f"## By {escape(column_board.confidence)}",
        f"Groups: {say.apart_sentence(column_board, board)} A letter behind a number names its group.",
        markdown_table(head, rows),
        "\n".join(left),
    ]


def _answers(board: Board) -> list[str]:
    if not board.answers:
        return []
    rows = [
        [a.question, say.title_of(e.measure, board), say.change(e.measure, e.contrast), say.effect_words(e)]
        for a in board.answers
        for e in a.effects
    ]
    how = [
        f"- {escape(a.question)} {escape(a.how)}: {escape(fmt.list_words(a.members, most=8))}." for a in board.answers
    ]
    return ["## Questions", markdown_table(["question", "measure", "difference", "verdict"], rows), "\n".join(how)]


def _groups(board: Board) -> list[str]:
    first = board.boards[0]
    if len(first.groups) < 2:
        return []
    ordered = sorted(first.groups, key=lambda g: -g.means["ece"].value if "ece" in g.means else 0.0)
    rows = [
        [g.group, f"{g.questions:,}"]
        + [
            f"{say.value(x, g.means[x].value)} ({say.interval(x, g.means[x].low, g.means[x].high)})"
            if x in g.means
            else ""
            for x in GROUP_COLUMNS
        ]
        for g in ordered
    ]
    head = [board.group_column or "group", "questions", *(say.title_of(x, board) for x in GROUP_COLUMNS)]
    return [f"## By {escape(board.group_column or 'group')}: means over models", markdown_table(head, rows)]


def _transfers(board: Board) -> list[str]:
    if not board.transfers:
        return []
    lines = [f"- {say.transfer_sentence(transfer, board.group_column or 'group')}" for transfer in board.transfers]
    return ["## Does a repair carry over?", "\n".join(lines)]


def _ranks(s: Score) -> str:
    return f"{s.first}" if s.first == s.last else f"{s.first} to {s.last}"


def _place(s: Score) -> str:
    return group_letter(s.group)


def group_letter(group: int) -> str:
    """A, B, ..., Z, AA, AB, ...

    >>> group_letter(1), group_letter(26), group_letter(27)
    ('A', 'Z', 'AA')
    """
    letters = ""
    while group > 0:
        group, rest = divmod(group - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
