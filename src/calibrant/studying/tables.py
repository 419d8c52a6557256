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
    rows = [table.columns, *_rows(table)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


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
