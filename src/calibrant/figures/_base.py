"""Base classes of figures: rows of plain numbers first, a sentence about them, and a drawing last."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from calibrant.core.catalogue import check_options
from calibrant.core.predictions import Predictions

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

Row = dict[str, Any]  # numbers and words only: what JSON can hold


@dataclass(frozen=True)
class Figure:
    """A recipe: options only. `data` computes, `words` says, `chart` draws; only `chart` loads Altair."""

    title: ClassVar[str]
    reference: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_options(self)

    def for_page(self) -> Self:
        """The figure for an interactive page; most figures are the same there."""
        return self

    def words(self, rows: list[Row]) -> str:
        """A description of the figure in one or two sentences: its caption's first line, and its alternative text."""
        raise TypeError(f"{type(self).__name__} does not say what it shows: define words")

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        """Draw the rows, in the house's theme, readable at 80 mm."""
        raise TypeError(f"{type(self).__name__} does not say how it is drawn: define chart")


@dataclass(frozen=True)
class PredictionFigure(Figure):
    """A figure of the predictions of one model or several: {"CE": p, "focal": q}, or {"before": p, "after": q}."""

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        raise TypeError(f"{type(self).__name__} does not say its numbers: define data")


@dataclass(frozen=True)
class TableFigure(Figure):
    """A figure of a table: a training log, or rows of runs."""

    columns: ClassVar[tuple[str, ...]]  # what the table must have

    def data(self, table: "pl.DataFrame") -> list[Row]:
        raise TypeError(f"{type(self).__name__} does not say its numbers: define data")
