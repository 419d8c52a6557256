"""Figures of sums: rows in their place are drawn."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.figures import CATALOGUE, PredictionFigure

if TYPE_CHECKING:
    import altair as alt


def plot_sums(rows: Mapping[str, Predictions], figure: str) -> "alt.TopLevelMixin":
    """Draw a figure of predictions from the rows in place of one or more accumulators."""
    drawing = CATALOGUE.make(figure)
    if not isinstance(drawing, PredictionFigure):
        fix = "use for instance reliability or risk_coverage"
        raise InputError("plot", expected="a figure of predictions", got=f"'{figure}'", fix=fix)
    return drawing.chart(drawing.data(rows))
