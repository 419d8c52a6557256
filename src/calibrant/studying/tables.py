"""Tables of a study in text: for a terminal, a paper or a spreadsheet."""

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from calibrant.core import wording
from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.studying.claims import Finding

if TYPE_CHECKING:
    import polars as pl

    from calibrant.studying.study import Study

WIDTH = 80
LEAST = 5  # characters of a column
MARKS = {"held": "+", "did not hold": "-", "cannot be told": "?", "not run": " "}


def written(table: "pl.DataFrame", form: str, out: Path | None = None) -> str:
    """The table in a format, into a file where one is named; the text otherwise."""
    if form == "parquet":
        if out is None:
            raise InputError("--format parquet", expected="--out FILE", got="none", fix="name a file")
        write_whole(out, table.write_parquet)
        return f"Written to {out}."
    text = {"csv": _csv, "latex": _latex, "markdown": _markdown, "text": _text}[form](table)
    if out is None:
        return text
    write_whole(out, lambda stream: stream.write(f"{text}\n".encode()))
    return f"Written to {out}."


def wrapped(text: str, indent: str = "") -> str:
    """A line of text for a terminal: lines of at most 80 columns, but no word is cut, as a path is one."""
    more = indent + "  "
    return fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )


def duration(seconds: float) -> str:
    """How long something takes, in the unit that people would use.

    >>> duration(20), duration(600), duration(9000), duration(7e6)
    ('20 seconds', '10 minutes', '2.5 hours', '1,944 hours')
    """
    if seconds <= 90:
        return f"{seconds:.0f} seconds"
    if seconds <= 5400:
        return f"{seconds / 60:.0f} minutes"
    hours = seconds / 3600
    return f"{hours:,.1f} hours" if hours < 100 else f"{hours:,.0f} hours"


def difference(finding: Finding) -> str:
    """The number behind a verdict, with its corrected interval."""
    if finding.difference is None:
        return "no rows"
    measure, value = finding.claim.measure, wording.change(finding.claim.measure, finding.difference)
    if finding.low is None:
        return f"{value} (one seed in a cell: no interval)"
    return f"{value} [{wording.change(measure, finding.low)}, {wording.change(measure, finding.high)}]"


def detectable(finding: Finding) -> str:
    """The smallest difference that the runs could have seen; nothing where they have no interval."""
    return "" if finding.detectable is None else wording.change(finding.claim.measure, finding.detectable).lstrip("+")


def claims_in_words(study: "Study") -> str:
    """Every claim in a few lines."""
    findings = study.claims()
    lines = []
    for f in findings:
        lines.append(fill(f"{MARKS[f.verdict]} {f.claim.says}", WIDTH, subsequent_indent="  "))
        what = f"{f.claim.of} minus {f.claim.against or f.claim.than}, {f.claim.measure}: {difference(f)}"
        shown = f"; could see {seen}" if (seen := detectable(f)) else ""
        lines.append(
            fill(f"{f.verdict}: {what}, {f.pairs} pairs{shown}", WIDTH, initial_indent="    ", subsequent_indent="    ")
        )
    counts = {v: sum(f.verdict == v for f in findings) for v in MARKS}
    lines.append("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count))
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def _rows(table: "pl.DataFrame") -> list[list[str]]:
    return [[_cell(value) for value in row] for row in table.rows()]


def _text(table: "pl.DataFrame") -> str:
    """Columns side by side. Where they are too wide, what all rows share is said above, and long words are cut."""
    widths = _widths(table)
    shared = [name for name in table.columns if table[name].n_unique() == 1] if _width(widths) > WIDTH else []
    kept = table.drop(shared)
    widths = _narrowed(_widths(kept))
    lines = [
        "  ".join(_cut(c, w).ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
        for row in [kept.columns, *_rows(kept)]
    ]
    said = [wrapped(f"{name}: {_cell(table[name][0])}") for name in shared if _cell(table[name][0])]
    return "\n".join([*said, *([""] if said else []), *lines])


def _widths(table: "pl.DataFrame") -> list[int]:
    rows = [table.columns, *_rows(table)]
    return [max(len(row[i]) for row in rows) for i in range(len(table.columns))]


def _width(widths: list[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _narrowed(widths: list[int]) -> list[int]:
    """The widest columns give way until all fit, as far as something of them is left.

    >>> _narrowed([60, 30, 6]), _narrowed([10, 10])
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
    def safe(text: str) -> str:
        return "".join(
            f"\\{c}" if c in "&%$#_{}" else {"~": r"\textasciitilde{}", "\\": r"\textbackslash{}"}.get(c, c)
            for c in text
        )

    body = [" & ".join(map(safe, row)) + r" \\" for row in [table.columns, *_rows(table)]]
    columns = "".join("r" if kind.is_numeric() else "l" for kind in table.dtypes)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            body[0],
            r"\midrule",
            *body[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _csv(table: "pl.DataFrame") -> str:
    return table.write_csv().rstrip("\n")
