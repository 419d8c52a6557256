"""The board as one HTML file in the look of the report: interactive without a server or any network."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from calibrant.core.json import in_script, plain
from calibrant.core.text import number_format as fmt
from calibrant.measuring.model_noise import DIRECTION, MEASURES
from calibrant.reporting import pictures
from calibrant.reporting.board import sentences as say
from calibrant.reporting.board.board import Board, BoardBin, BoardModel, ConfidenceBoard, Score, Transfer
from calibrant.reporting.board.formats import GROUP_COLUMNS, STATES, group_letter

DIGITS = 5  # of numbers that the script shows
MOST_HEAT = 20  # lines of a table of transfers


def page(board: Board) -> str:
    """The whole file as text."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    script = _asset("board.js")
    environment = Environment(
        loader=DictLoader({"page": _asset("board.html.jinja")}), autoescape=True, undefined=StrictUndefined
    )
    environment.globals |= {
        "value": lambda *a: _unbroken(say.value(*a)),
        "interval": say.interval,
        "change": lambda *a: say.change(*a).replace("-", "\N{MINUS SIGN}"),
        "title_of": lambda measure: say.title_of(measure, board),
        "words": say.effect_words,
        "letter": group_letter,
        "count": fmt.count,
        "percent": lambda share: _unbroken(fmt.percent(share)),
        "transfer": lambda transfer: say.transfer_sentence(transfer, board.group_column or "group").replace(
            "-", "\N{MINUS SIGN}"
        ),
        "heat": heat,
    }
    return environment.get_template("page").render(
        board=board,
        first=board.boards[0],
        measures=MEASURES,
        group_columns=GROUP_COLUMNS,
        groups=sorted(board.boards[0].groups, key=lambda g: -g.means["ece"].value if "ece" in g.means else 0.0),
        transfers=[transfer for transfer in board.transfers if len(transfer.names) <= MOST_HEAT],
        headline=say.headline(board),
        lead=say.lead(board),
        methods=say.method_sentences(board),
        apart=say.apart_sentence(board.boards[0], board),
        data=Markup(in_script(plain(page_data(board)))),
        css=Markup(_asset("page.css", "calibrant.reporting") + _asset("board.css")),
        theme=Markup(pictures.theme_css()),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def page_data(board: Board) -> dict[str, Any]:
    """The data that the script of the page reads."""
    measures = [
        {"id": m, "title": say.title_of(m, board), "down": DIRECTION[m] > 0, "share": m in say.SHARES} for m in MEASURES
    ]
    return {
        "measures": measures,
        "group": board.group_column,
        "groupColumns": [{"title": say.title_of(x, board), "share": x in say.SHARES} for x in GROUP_COLUMNS],
        "boards": [_board_data(column_board) for column_board in board.boards],
    }


def _board_data(column_board: ConfidenceBoard) -> dict[str, Any]:
    return {
        "confidence": column_board.confidence,
        "models": [_model_data(m) for m in column_board.models],
        "worse": {state: {m: facts.worse for m, facts in column_board.rankings[state].items()} for state in STATES},
    }


def _model_data(m: BoardModel) -> dict[str, Any]:
    c = m.counts
    change = None if m.change is None else [_short(n) for n in (m.change.value, m.change.low, m.change.high)]
    return {
        "name": m.name,
        "counts": [c.rows, c.used, c.missing, c.above, c.below, c.distinct],
        "says": _short(m.says),
        "reason": m.reason,
        "scores": {state: {x: _score_data(m.scores[state][x]) for x in MEASURES} for state in STATES},
        "bins": {state: [_bin_data(b) for b in m.bins[state]] for state in STATES},
        "change": change,
        "groups": {name: [_short(values[x]) for x in GROUP_COLUMNS] for name, values in m.by_group.items()},
    }


def _score_data(s: Score) -> list[Any]:
    return [_short(s.value), _short(s.low), _short(s.high), s.first, s.last, s.group]


def _bin_data(b: BoardBin) -> list[Any]:
    return [_short(b.low), _short(b.high), b.rows, _short(b.says), _short(b.right)]


def _short(number: float) -> float | None:
    return None if number != number else round(number, DIGITS)


def heat(transfer: Transfer) -> list[tuple[str, list[tuple[str, str]]]]:
    """Lines of a table: the value of each cell, and how strong its colour is."""
    finite = [v for line in transfer.matrix for v in line if v == v]
    most = max(finite, default=1.0) or 1.0
    return [
        (name, [("", "0%") if v != v else (f"{100 * v:.1f}", f"{70 * v / most:.0f}%") for v in line])
        for name, line in zip(transfer.names, transfer.matrix, strict=True)
    ]


def _unbroken(text: str) -> str:
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _asset(name: str, package: str = "calibrant.reporting.board") -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
