"""Tables of results in a notebook, in print and as data frames: plain, every name escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError, visible

if TYPE_CHECKING:
    import polars as pl

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
