"""A figure in one call: it shows itself in a notebook, and saves itself."""

import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from calibrant.core.predictions import Predictions
from calibrant.core.text.theme import Theme, config
from calibrant.figures import CATALOGUE, Figure, Row
from calibrant.monitoring.watch import Watch
from calibrant.plotting.draw import FigureSource, compute, draw, name_models, picture, spec
from calibrant.plotting.source import evidence_table, is_measured, measure_table

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Plot:
    """A figure and what it is drawn from: `rows` are its numbers, `words` its sentence, `chart` the Altair chart."""

    figure: Figure
    source: FigureSource = field(repr=False)
    rows: list[Row] = field(repr=False)
    theme: Theme = "light"

    @property
    def words(self) -> str:
        return self.figure.words(self.rows)

    @property
    def chart(self) -> "alt.TopLevelMixin":
        """The Altair chart without the house's colours, to change or to put beside others."""
        return self.figure.chart(self.rows)

    def save(self, path: str | Path) -> "Plot":
        """Save to .svg, .png, .pdf or .html."""
        draw(self.figure, self.source, path, theme=self.theme)
        return self

    def __str__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The figure for notebooks: a picture that needs no network, and its sentence."""
        svg = picture(spec(self.figure, self.rows, theme=self.theme))
        figure = f"<figure>{svg}<figcaption>{html.escape(self.words)}</figcaption></figure>"
        return {"text/html": figure, "image/svg+xml": svg, "text/plain": self.words}


@overload
def plot(figure: Literal["list"]) -> list[str]: ...


@overload
def plot(figure: str | Figure, source: "FigureSource | Watch", *, theme: Theme = "light") -> Plot: ...


def plot(
    figure: str | Figure, source: "FigureSource | Watch | None" = None, *, theme: Theme = "light"
) -> Plot | list[str]:
    """Draw predictions (one model, or several by name), a table or a watch; `plot("list")` names the figures.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> plot("reliability:bins=2", {"demo": p}).rows[0]["gap"]
    0.25
    """
    if isinstance(figure, str) and figure == "list":
        return CATALOGUE.names()
    config(theme)  # a wrong theme is refused before anything is computed
    drawing = CATALOGUE.make(figure) if isinstance(figure, str) else figure
    if isinstance(source, Watch):
        source = evidence_table({"watch": source})
    if is_measured(drawing) and isinstance(source, Predictions | dict):
        source = measure_table(drawing, name_models(source))
    rows = compute(drawing, source)  # refuses what is no source
    assert source is not None
    return Plot(drawing, source, rows, theme)
