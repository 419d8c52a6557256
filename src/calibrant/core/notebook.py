"""How results look in a notebook: plain tables, every name escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """One row a result; the first cell is its name.

    >>> html_table("", ["measure", "value"], [["ece<1>", "0.07"]])
    '<table><tr><th>measure</th><th>value</th></tr><tr><th>ece&lt;1&gt;</th><td>0.07</td></tr></table>'
    """
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for first, *cells in rows
    )
    return f"<table>{said}<tr>{names}</tr>{body}</table>"
