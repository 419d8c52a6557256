"""Tables of results in a notebook and in print: plain, every name escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from calibrant.core.errors import visible

Table = tuple[str, Sequence[str], Sequence[Sequence[str]]]  # caption, head, rows


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of results as HTML: one row a result; the first cell is its name.

    >>> html_table("", ["measure", "value"], [["ece<1>", "0.07"]])
    '<table><tr><th>measure</th><th>value</th></tr><tr><th>ece&lt;1&gt;</th><td>0.07</td></tr></table>'
    """
    heading = f"<caption>{escape(caption)}</caption>" if caption else ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for first, *cells in rows
    )
    return f"<table>{heading}<tr>{names}</tr>{body}</table>"


def text_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of results as plain text: columns of one width each.

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


class TableResult:
    """A result that is a table: in a notebook, and in print. `table` gives its caption, its head and its rows."""

    def table(self) -> Table:
        raise TypeError(f"{type(self).__name__} does not say how it looks: define table")

    def __str__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())
