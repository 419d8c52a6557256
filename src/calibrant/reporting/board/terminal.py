"""A board in the terminal, in 80 columns."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from calibrant.core.text import number_format as fmt
from calibrant.reporting.board import sentences as say
from calibrant.reporting.board.board import Board, BoardAnswer, BoardModel
from calibrant.reporting.board.formats import group_letter
from calibrant.reporting.tables import table_of

LONGEST = 25  # characters of a name


def render(board: Board) -> list[RenderableType]:
    """The ranking by ECE, notes, and the answers."""
    first = board.boards[0]
    parts: list[RenderableType] = [Text(say.headline(board), style="bold"), Text(" ".join(say.lead(board))), Text("")]
    answered = f"at {fmt.percent(board.settings.max_error, 0)}"
    table = table_of("rank", "model", "ECE", "95 % interval", "AUROC", "right", answered, "after")
    if board.settings.level != 0.95:
        table.columns[3].header = f"{fmt.level(board.settings.level)} interval"
    for m in first.ordered("ece"):
        table.add_row(*_cells(m))
    parts.append(table)
    for m in first.models:
        if m.reason:
            parts.append(Text(f"{m.name}: not ranked, {m.reason}."))
    parts.append(
        Text(
            "\nrank: those that the model may have by its ECE; letters: groups that cannot be told apart. "
            f"right: accuracy. {answered}: share answered at that error. after: ECE after {board.settings.calibrator}, "
            f"fitted on half of the questions.\nGroups: {say.apart_sentence(first, board)}"
        )
    )
    parts += [Text(f"- {note}") for note in board.notes]
    for answer in board.answers:
        parts += [Text(f"\n{answer.question}", style="bold"), Text(answer.how, style="dim"), _effects(answer, board)]
    for transfer in board.transfers:
        parts.append(Text(f"\n{say.transfer_sentence(transfer, board.group_column or 'group')}"))
    return parts


def _cells(m: BoardModel) -> list[str]:
    s = m.scores["before"]
    rank = f"{s['ece'].first}" if s["ece"].first == s["ece"].last else f"{s['ece'].first}-{s['ece'].last}"
    name = m.name if len(m.name) <= LONGEST else f"{m.name[: LONGEST - 2]}.."
    return [
        rank,
        name,
        f"{100 * s['ece'].value:.1f} {group_letter(s['ece'].group)}",
        say.interval("ece", s["ece"].low, s["ece"].high),
        "" if s["auroc_correct"].value != s["auroc_correct"].value else f"{s['auroc_correct'].value:.3f}",
        f"{100 * s['accuracy'].value:.1f}",
        f"{100 * s['answered'].value:.1f}",
        ""
        if m.scores["after"]["ece"].value != m.scores["after"]["ece"].value
        else f"{100 * m.scores['after']['ece'].value:.1f}",
    ]


def _effects(answer: BoardAnswer, board: Board) -> Table:
    table = table_of("measure", "difference", "verdict")
    for e in answer.effects:
        table.add_row(say.title_of(e.measure, board), say.change(e.measure, e.contrast), say.effect_words(e))
    return table
