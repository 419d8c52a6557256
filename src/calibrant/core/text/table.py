"""Tables of text: one writer for each format, with the escapes that the format needs."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError, visible

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Marked:
    """A cell that is printed bold, or with a sign behind it."""

    text: str
    bold: bool = False
    sign: str = ""  # "~" or "†"


Cell = str | Marked
Rows = Iterable[Sequence[Cell]]
Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # caption, head, rows

LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"
}  # fmt: skip
LATEX_SIGNS = {"": "", "~": r"$^\sim$", "†": r"$^{\dagger}$"}


def html_table(caption: str, head: Sequence[str], rows: Rows) -> str:
    """A table as HTML: one row a result; the first cell is its name.

    >>> html_table("", ["measure", "value"], [["ece<1>", Marked("0.07", bold=True)]])
    '<table><tr><th>measure</th><th>value</th></tr><tr><th>ece&lt;1&gt;</th><td><b>0.07</b></td></tr></table>'
    """

    def write(cell: Cell) -> str:
        marked = _mark(cell)
        return f"<b>{escape(marked.text)}</b>" if marked.bold else escape(marked.text)

    heading = f"<caption>{escape(caption)}</caption>" if caption else ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{write(first)}</th>{''.join(f'<td>{write(cell)}</td>' for cell in cells)}</tr>"
        for first, *cells in rows
    )
    return f"<table>{heading}<tr>{names}</tr>{body}</table>"


def text_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as plain text: columns of one width each.

    >>> print(text_table("two rows", ["measure", "value"], [["ece", "0.07"], ["accuracy", "0.9"]]))
    two rows
    measure   value
    ece       0.07
    accuracy  0.9
    """
    lines = [tuple(visible(cell) for cell in line) for line in (head, *rows)]
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(f"{cell:{w}}" for cell, w in zip(line, wide, strict=True)).rstrip() for line in lines]
    return "\n".join([visible(caption), *texts] if caption else texts)


def markdown_table(head: Sequence[str], rows: Rows, *, numbers: bool = False) -> str:
    """A table in Markdown; with `numbers`, all columns but the first are ranged right.

    >>> print(markdown_table(["method", "ece"], [["a|b", Marked("0.07", sign="~")]], numbers=True))
    | method | ece |
    | --- | --: |
    | a\\|b | 0.07~ |
    """
    rule = ["---", *["--:" if numbers else "---"] * (len(head) - 1)]
    lines = [[escape_markdown(name) for name in head], rule]
    for row in rows:
        cells = [(escape_markdown(marked.text), marked) for marked in map(_mark, row)]
        lines.append([f"**{text}**" if marked.bold else f"{text}{marked.sign}" for text, marked in cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex_table(head: Sequence[str], rows: Rows, columns: str) -> str:
    r"""A table in LaTeX, for booktabs; `columns` says how each is ranged.

    >>> print(latex_table(["method", "ece (%)"], [["a_b", Marked("6.5 ± 0.7", bold=True)]], "lr"))
    \begin{tabular}{lr}
    \toprule
    method & ece (\%) \\
    \midrule
    a\_b & \textbf{6.5 $\pm$ 0.7} \\
    \bottomrule
    \end{tabular}
    """
    first, *body = (" & ".join(map(_latex_cell, row)) + r" \\" for row in (head, *rows))
    begin = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", first, r"\midrule"]
    return "\n".join([*begin, *body, r"\bottomrule", r"\end{tabular}"])


def csv_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV, numbers with all their digits."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    return out.getvalue()


def escape_markdown(text: str) -> str:
    """Escape text so that it starts no tag, link, image or new table cell.

    >>> print(escape_markdown("a | <b> [c](d)"))
    a \\| &lt;b&gt; \\[c\\](d)
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for character in "\\|[]":  # the backslash first: one in a name would undo the next
        text = text.replace(character, f"\\{character}")
    return text


def escape_latex(text: str) -> str:
    r"""Escape text so that nothing in it is a command of LaTeX.

    >>> escape_latex("50 % of a_b")
    '50 \\% of a\\_b'
    """
    return "".join(LATEX.get(c, c) for c in text)


def _latex_cell(cell: Cell) -> str:
    marked = _mark(cell)
    text = escape_latex(marked.text)
    return rf"\textbf{{{text}}}" if marked.bold else text + LATEX_SIGNS[marked.sign]


def _mark(cell: Cell) -> Marked:
    return Marked(cell) if isinstance(cell, str) else cell


class TableResult:
    """A result that is a table: in a notebook, and in print. `table` gives its caption, its head and its rows."""

    def table(self) -> Table:
        raise TypeError(f"{type(self).__name__} does not say how it looks: define table")

    def __str__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())


class FrameResult:
    """A result that becomes a data frame: of one row, or of a row for each result in a list."""

    def records(self) -> list[dict[str, Any]]:
        """The rows of the frame, as they are in JSON."""
        return [result.to_dict() for result in self] if isinstance(self, list) else [self.to_dict()]

    def to_dict(self) -> dict[str, Any]:
        raise TypeError(f"{type(self).__name__} does not say what it holds: define to_dict")

    def to_polars(self) -> "pl.DataFrame":
        """The result as a polars data frame, one row a result; undefined numbers are null."""
        import polars as pl

        return pl.DataFrame(self.records(), infer_schema_length=None)

    def to_pandas(self) -> Any:
        """The result as a pandas data frame, one row a result, where pandas is installed."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            fix = "pip install pandas, or call .to_polars()"
            raise InputError("to_pandas", expected="pandas", got="no such package", fix=fix) from None
        return pandas.DataFrame(self.records())
