"""Tables of a study in text: for a terminal, a paper or a spreadsheet."""

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError
from calibrant.core.files import write_text, write_whole
from calibrant.core.text import number_format as fmt
from calibrant.core.text.number_format import wrap
from calibrant.core.text.table import latex_table
from calibrant.measuring import measure_format as mf
from calibrant.studying.claims import Finding, PairedDifference, Verdict

if TYPE_CHECKING:
    import polars as pl

    from calibrant.studying.study import Study

WIDTH = 80
LEAST = 5  # characters of a column
MARKS: dict[Verdict, str] = {
    "held": "+",
    "did not hold": "-",
    "depends on the data set": "±",
    "inconclusive": "?",
    "not run": " ",
}


def render_table(table: "pl.DataFrame", form: str, out: Path | None = None) -> str:
    """The table in a format, into a file where one is named; the text otherwise."""
    if form == "parquet":
        if out is None:
            raise InputError("--format parquet", expected="--out FILE", got="none", fix="name a file")
        write_whole(out, table.write_parquet)
        return f"Written to {out}."
    text = {"csv": _csv, "latex": _latex, "markdown": _markdown, "text": _text}[form](table)
    return render_text(text, out)


def render_text(text: str, out: Path | None) -> str:
    """The text itself, or the name of the file it was written to."""
    if out is None:
        return text
    write_text(out, f"{text}\n")
    return f"Written to {out}."


def difference(finding: Finding) -> str:
    """The difference behind a verdict, with its corrected interval."""
    return "no rows" if finding.overall is None else _interval(finding.claim.measure, finding.overall)


def cells_in_words(finding: Finding) -> list[str]:
    """The difference in each cell, where there are several."""
    if len(finding.cells) < 2:
        return []
    return [f"{name}: {_interval(finding.claim.measure, interval)}" for name, interval in finding.cells]


def detectable(finding: Finding) -> str:
    """The smallest difference that these runs would find 4 times in 5; empty where they have no interval."""
    value = None if finding.overall is None else finding.overall.detectable
    return "" if value is None else mf.change(finding.claim.measure, value).lstrip("+")


def settled_by(finding: Finding) -> str:
    """The number of seeds that would settle an inconclusive claim; empty for a decided one or without an interval.

    >>> from calibrant.studying.plan import Claim
    >>> claim = Claim(says="c", of="a", measure="ece", is_="lower", against="b")
    >>> some = PairedDifference(-0.01, -0.02, 0.01)
    >>> facts = {"verdict": "inconclusive", "level": 0.05, "claims": 1, "overall": some}
    >>> settled_by(Finding(claim=claim, **facts, seeds_to_settle=1234))
    '1,234'
    """
    if finding.verdict != "inconclusive" or finding.overall is None or finding.overall.low is None:
        return ""
    return f"{finding.seeds_to_settle:,}" if finding.seeds_to_settle else "no number of"


def claims_in_words(study: "Study") -> str:
    """Every claim with its verdict and numbers, in a few lines each."""
    study.check_code()
    findings = study.claims()
    lines = []
    for f in findings:
        lines.append(fill(f"{MARKS[f.verdict]} {f.claim.says}", WIDTH, subsequent_indent="  "))
        rival = fmt.list_words(f.claim.rivals) if f.claim.rivals else f"{f.claim.than:g}"
        if f.claim.rank > 1:
            rival = f"the {_ordinal(f.claim.rank)} best of {rival}"
        power = f"; could see {least}" if (least := detectable(f)) else ""
        power += f"; {more} seeds would settle it" if (more := settled_by(f)) else ""
        pairs = 0 if f.overall is None else f.overall.pairs
        compared = f"{f.claim.of} minus {rival}, {f.claim.measure}: {difference(f)}, {pairs} pairs{power}"
        lines += [_indent(f"{f.verdict}: {compared}"), *(_indent(cell) for cell in cells_in_words(f))]
    counts = {v: sum(f.verdict == v for f in findings) for v in MARKS}
    lines.append("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count))
    if findings:
        lines.append(wrap(f"Levels are corrected for the {findings[0].claims} claims that this scale can judge."))
    return "\n".join(lines)


def _interval(measure: str, interval: PairedDifference) -> str:
    value = mf.change(measure, interval.difference)
    if interval.low is None or interval.high is None:
        return f"{value} (one seed in a cell: no interval)"
    return f"{value} [{mf.change(measure, interval.low)}, {mf.change(measure, interval.high)}]"


def _indent(text: str) -> str:
    return fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def _ordinal(rank: int) -> str:
    return {2: "second", 3: "third"}.get(rank, f"{rank}th")


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _rows(table: "pl.DataFrame") -> list[list[str]]:
    return [[_cell(value) for value in row] for row in table.rows()]


def _text(table: "pl.DataFrame") -> str:
    """The table as text; where it is too wide, what all rows share is said above, and long words are cut."""
    widths = _widths(table)
    shared = [name for name in table.columns if table[name].n_unique() == 1] if _width(widths) > WIDTH else []
    rest = table.drop(shared)
    widths = _narrow(_widths(rest))
    lines = [
        "  ".join(_cut(c, w).ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in [rest.columns, *_rows(rest)]
    ]
    notes = [wrap(f"{name}: {_cell(table[name][0])}") for name in shared if _cell(table[name][0])]
    return "\n".join([*notes, *([""] if notes else []), *lines])


def _widths(table: "pl.DataFrame") -> list[int]:
    rows = [table.columns, *_rows(table)]
    return [max(len(row[i]) for row in rows) for i in range(len(table.columns))]


def _width(widths: list[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _narrow(widths: list[int]) -> list[int]:
    """Shorten the widest columns until all fit, as far as something of them is left.

    >>> _narrow([60, 30, 6]), _narrow([10, 10])
    ([40, 30, 6], [10, 10])
    """
    widths = list(widths)
    while _width(widths) > WIDTH and max(widths) > LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _markdown(table: "pl.DataFrame") -> str:
    head = [f"| {' | '.join(table.columns)} |", "|" + "---|" * len(table.columns)]
    return "\n".join(
        [*head, *(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in row)} |" for row in _rows(table))]
    )


def _latex(table: "pl.DataFrame") -> str:
    columns = "".join("r" if kind.is_numeric() else "l" for kind in table.dtypes)
    return latex_table(table.columns, _rows(table), columns)


def _csv(table: "pl.DataFrame") -> str:
    return table.write_csv().rstrip("\n")
