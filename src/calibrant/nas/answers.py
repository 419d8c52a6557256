"""Answers about a table of networks: read the table, ask, and give them as a page, Markdown, text or JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError, visible
from calibrant.core.files import write_text
from calibrant.core.text.number_format import wrap
from calibrant.figures import CATALOGUE, TableFigure
from calibrant.nas import questions
from calibrant.nas.networks import in_our_columns, mark_networks
from calibrant.nas.questions import Answer, Picture, find, format_value
from calibrant.nas.table import open_table, without_copies
from calibrant.reporting import pictures

if TYPE_CHECKING:
    import polars as pl

MARKERS = ("<!-- answers: written by calibrant nas ask all --out -->\n", "<!-- end of answers -->")
ABOUT = (
    "The table that comes with calibrant: a sample of small networks, each trained once and briefly. Directions can be "
    "compared with the published answers, absolute numbers cannot. A row is one seed, and may be a lucky one: a "
    "network with an ECE of 2.6 % had 4.0 to 5.2 % with five other seeds."
)
SHOWN = 24  # numbers of an answer on a terminal
MOST_NUMBERS = 12  # of an answer that are shown at once on the page; the others can be opened


def read_networks(paths: Sequence[Path] = ()) -> "pl.DataFrame":
    """Read all files into one table with our columns; without a file the table that comes with calibrant."""
    import polars as pl

    tables = [in_our_columns(open_table(path), path.stem) for path in paths] or [in_our_columns(open_table(), "nas")]
    together = without_copies(pl.concat(tables, how="diagonal_relaxed"), tables)
    return mark_networks(together)


def answer_all(table: "pl.DataFrame", specs: Sequence[str] | None = None) -> list[Answer]:
    """Answer the questions, in the order of the study; every question is checked before the first is asked."""
    chosen = [questions.make(spec) for spec in (questions.names() if specs is None else specs)]
    for question in chosen:
        question.check(table)
    return [question(table) for question in sorted(chosen, key=lambda question: question.order)]


def save_page(answers: Sequence[Answer], table: "pl.DataFrame", out: str | Path, *, about: str = "") -> None:
    text = page(answers, table, about)
    write_text(out, text)


def page(answers: Sequence[Answer], table: "pl.DataFrame", about: str = "") -> str:
    """The answers as one HTML file without a script; `about` says what kind of networks these are."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    template = (files("calibrant.nas") / "answers.html.jinja").read_text()
    environment = Environment(loader=DictLoader({"page": template}), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("page").render(
        answers=[
            (a, find(a.question), [_figure(p, f"{a.question}-{i}") for i, p in enumerate(a.pictures)]) for a in answers
        ],
        networks=table.height,
        verdicts={v: sum(a.verdict == v for a in answers) for v in ("agrees", "differs", "inconclusive")},
        populations=_populations(answers),
        most=MOST_NUMBERS,
        shown=format_value,
        about=about,
        css=Markup((files("calibrant.reporting") / "page.css").read_text()),
        theme=Markup(pictures.theme_css()),
    )


def markdown(answers: Sequence[Answer], out: str | Path) -> None:
    """Write the answers between the markers of a page, or as a page of their own where there is none."""
    file = Path(out)
    before = file.read_text() if file.exists() else "".join(MARKERS)
    if any(marker not in before for marker in MARKERS):
        raise InputError(
            str(out), expected=f"the lines {MARKERS[0].strip()} and {MARKERS[1]}", got="none", fix="add them"
        )
    head, rest = before.split(MARKERS[0], 1)
    text = head + MARKERS[0] + "\n" + block(answers) + "\n" + MARKERS[1] + rest.partition(MARKERS[1])[2]
    write_text(file, text)


def block(answers: Sequence[Answer]) -> str:
    """The answers as a table, and how many networks were asked."""
    lines = ["| question | published | these networks | |", "|---|---|---|---|"]
    for a in answers:
        lines.append(f"| {find(a.question).title} | {a.published} | {_cell(a)} | **{a.verdict}** |")
    counted = [
        f"{p['data']} ({p['space']}): {p['networks']:,}, {p['unique']:,} unique, {p['constant']:,} constant"
        for p in _populations(answers)
    ]
    return "\n".join([*lines, "", f"Networks: {'; '.join(counted)}. {answers[0].note}", ""])


def to_dict(answer: Answer) -> dict[str, Any]:
    """An answer as JSON: pictures by title only, their numbers are in the table."""
    numbers = [asdict(n) | {"verdict": n.verdict} for n in answer.numbers]
    return {
        "question": answer.question,
        "sentence": answer.sentence,
        "published": answer.published,
        "verdict": answer.verdict,
        "claims": [asdict(claim) for claim in answer.claims],
        "numbers": numbers,
        "networks": [asdict(population) for population in answer.populations],
        "pictures": [picture.title for picture in answer.pictures],
        "note": answer.note,
    }


def as_text(answer: Answer, *, short: bool) -> str:
    """An answer for a terminal; the short form leaves the numbers out."""
    lines = [
        wrap(f"{find(answer.question).title}  [{answer.verdict}]", more=""),
        wrap(visible(answer.sentence), "  ", ""),
    ]
    for claim in answer.claims:
        lines += [wrap(f"- {claim.verdict}: {visible(claim.says)}", "  ", "  ")]
        lines += [wrap(visible(claim.because), "      ", "")] if claim.because else []
    if not short:
        for n in answer.numbers[:SHOWN]:
            beside = f", published {n.published:g}: {n.verdict}" if n.published is not None else ""
            lines.append(f"  {visible(n.name):46} {format_value(n)}")
            lines.append(wrap(f"{visible(n.where)}, {n.networks:,} networks{beside}", "      ", ""))
        if len(answer.numbers) > SHOWN:
            lines.append(f"  ... and {len(answer.numbers) - SHOWN} more: --json or --out answers.html")
        lines += [wrap(visible(_count_words(answer)), "  ", ""), wrap(visible(answer.note), "  ", "")]
    return "\n".join(lines) + "\n"


def _count_words(answer: Answer) -> str:
    parts = [
        f"{p.data}: {p.networks:,} networks of the {p.space} space, {p.unique:,} unique ({p.constant:,} constant)"
        for p in answer.populations
    ]
    return "; ".join(parts) + "."


def _cell(a: Answer) -> str:
    return " ".join([a.sentence, *(f"({claim.because}.)" for claim in a.claims if claim.main)]).replace("|", "\\|")


def _populations(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    populations = {(p.space, p.data): vars(p) for a in answers for p in a.populations}
    return list(populations.values())


def _figure(picture: Picture, name: str) -> dict[str, Any]:
    """A picture as inline SVG, or the reason why the table has nothing to draw."""
    from markupsafe import Markup

    figure = CATALOGUE.make(picture.figure)
    assert isinstance(figure, TableFigure)
    try:
        rows = figure.data(picture.table)
    except InputError as error:  # for instance a column without a value
        return {"title": picture.title, "words": str(error), "svg": ""}
    words = picture.words or figure.words(rows)
    svg = pictures.inline(picture.figure, rows, words, name=name)
    return {"title": picture.title, "words": words, "svg": Markup(svg)}
