"""Results of several methods: a table of values, and its text for papers and pages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.core.errors import visible
from calibrant.core.json import plain
from calibrant.core.text.table import Marked, csv_table, html_table, latex_table, markdown_table
from calibrant.measuring.measure_format import is_share


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Values of one measure of one method over its runs; `p_value` tests the difference from the best, corrected."""

    measure: str
    values: tuple[float, ...]
    mean: float
    sd: float | None  # None for one run
    best: bool = False  # several may be, exactly alike
    p_value: float | None = None  # None for the best, and where there is no test
    test: str | None = None

    def is_tied(self, alpha: float) -> bool:
        """Whether it is not significantly worse than the best."""
        return self.p_value is not None and self.p_value >= alpha


@dataclass(frozen=True)
class Results:
    """One line a method, in the order given; `alpha` is the level of the tests."""

    by: str
    measures: tuple[str, ...]
    lines: Mapping[str, tuple[Cell, ...]]
    alpha: float = 0.05
    definitions: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        lines = [{"group": name, "cells": [plain(cell) for cell in cells]} for name, cells in self.lines.items()]
        head = {"by": self.by, "alpha": self.alpha, "definitions": dict(self.definitions), "note": self.note}
        return {**head, "lines": lines}

    @property
    def note(self) -> str:
        """The note that explains the numbers and marks of the table."""
        runs = sorted({len(cells[0].values) for cells in self.lines.values()})
        count = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        tests = sorted({cell.test for cells in self.lines.values() for cell in cells if cell.test})
        text = f"Mean ± standard deviation over {count} run{'' if runs == [1] else 's'}."
        if not tests:
            return f"{text} * is the best."
        how = f"{' or '.join(tests)}, Holm-corrected over the methods, level {self.alpha:g}"
        return f"{text} * is the best, ~ is not significantly worse ({how})."

    def text(self, form: str) -> str:
        """The table as "markdown", "latex" or "csv"."""
        return FORMS[form](self)

    def _repr_html_(self) -> str:
        return FORMS["html"](self)

    def __str__(self) -> str:
        return self.text("markdown").rstrip()


def heads(results: Results) -> list[str]:
    """The names of the columns, with the unit of shares."""
    return [f"{spec} (%)" if is_share(spec) else spec for spec in results.measures]


def number(cell: Cell) -> str:
    """Format mean and standard deviation, shares in percent.

    >>> both = Cell(measure="ece", values=(0.06, 0.07), mean=0.065, sd=0.0071)
    >>> number(both), number(Cell(measure="nll", values=(0.5,), mean=0.5, sd=None))
    ('6.50 ± 0.71', '0.5000')
    """
    if cell.mean != cell.mean:
        return "undefined"
    scale, digits = (100, 2) if is_share(cell.measure) else (1, 4)
    spread = "" if cell.sd is None else f" ± {scale * cell.sd:.{digits}f}"
    return f"{scale * cell.mean:.{digits}f}{spread}"


def mark(cell: Cell, alpha: float) -> str:
    return "*" if cell.best else "~" if cell.is_tied(alpha) else ""


def markdown(results: Results) -> str:
    return f"{markdown_table(*_marked(results), numbers=True)}\n\n{_note_on_bold(results)}\n"


def latex(results: Results) -> str:
    """The table in LaTeX, for booktabs."""
    table = latex_table(*_marked(results), "l" + "r" * len(results.measures))
    return f"{table}\n% {_note_on_bold(results).replace('±', '+-')}\n"


def as_csv(results: Results) -> str:
    """The table as CSV: one line for each method and measure, with full digits."""
    rows = []
    for group, cells in results.lines.items():
        for c in cells:
            known = "" if c.sd is None else c.sd, c.best, "" if c.p_value is None else c.p_value
            rows.append([visible(group), c.measure, len(c.values), c.mean, *known])
    return csv_table([results.by, "measure", "runs", "mean", "sd", "best", "p_value"], rows)


def html(results: Results) -> str:
    return html_table(_note_on_bold(results), *_marked(results))


FORMS: dict[str, Callable[[Results], str]] = {"markdown": markdown, "latex": latex, "csv": as_csv, "html": html}


def _marked(results: Results) -> tuple[list[str], list[list[str | Marked]]]:
    """Head and rows of the table, with the best in bold and ties marked."""
    rows: list[list[str | Marked]] = [
        [visible(group), *(Marked(number(c), c.best, "~" if c.is_tied(results.alpha) else "") for c in cells)]
        for group, cells in results.lines.items()
    ]
    return [results.by, *heads(results)], rows


def _note_on_bold(results: Results) -> str:
    return results.note.replace("* is the best", "Bold is the best")
