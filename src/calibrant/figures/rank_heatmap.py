"""Rank correlations between the columns of a table: do measures order models alike?"""

from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from calibrant.core.curves.ranking import kendall, spearman
from calibrant.core.text.theme import dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._checks import choose_columns, numbers, plain
from calibrant.figures._layers import chart_of, names_in

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

NUMBERS_UP_TO = 12  # columns whose cells have room for a number


@dataclass(frozen=True)
class RankHeatmap(TableFigure):
    """Kendall's tau-b (or Spearman's rho) of every pair of columns, over the rows where both have a value.

    `of=ece+nll+brier` chooses columns, else all columns of numbers are taken. Undefined, and left blank, where a column
    is constant or fewer than two rows are left.

    >>> import polars as pl
    >>> rows = RankHeatmap().data(pl.DataFrame({"ece": [1, 2, 3], "nll": [1.0, 3.0, 2.0]}))
    >>> [(row["x"], row["y"], round(row["value"], 3)) for row in rows if row["x"] != row["y"]]
    [('ece', 'nll', 0.333), ('nll', 'ece', 0.333)]
    """

    method: Literal["kendall", "spearman"] = "kendall"
    of: str | None = None

    title: ClassVar[str] = "Rank correlations"
    reference: ClassVar[str] = "Kendall, Biometrika 1945; Tao et al., A Benchmark Study on Calibration, ICLR 2024"
    columns: ClassVar[tuple[str, ...]] = ()

    def data(self, table: "pl.DataFrame") -> list[Row]:
        columns = choose_columns("rank_heatmap", table, self.of)
        values = {column: numbers(table[column]) for column in columns}
        correlation = kendall if self.method == "kendall" else spearman
        cells = {}
        for a, b in combinations_with_replacement(columns, 2):
            both = np.isfinite(values[a]) & np.isfinite(values[b])
            value = plain(correlation(values[a][both], values[b][both]))
            cells[a, b] = cells[b, a] = {"value": value, "count": int(both.sum())}
        return [{"x": a, "y": b, **cells[a, b]} for a in columns for b in columns]

    def words(self, rows: list[Row]) -> str:
        pairs = [row for row in rows if row["x"] < row["y"] and row["value"] is not None]
        name = "Kendall's tau-b" if self.method == "kendall" else "Spearman's rho"
        title = f"{name} between {len(names_in(rows, 'x'))} columns"
        if not pairs:
            return f"{title}: no pair of different columns has one."
        low, high = (end(pairs, key=lambda row: row["value"]) for end in (min, max))
        return (
            f"{title}: from {low['value']:.2f} ({low['x']} and {low['y']}) "
            f"to {high['value']:.2f} ({high['x']} and {high['y']})."
        )

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        names = names_in(rows, "x")
        side = 28 * max(len(names), 3) if len(names) <= NUMBERS_UP_TO else 13 * len(names)
        bare: dict[str, Any] = {"grid": False, "ticks": False, "domain": False, "labelLimit": 90, "labelOverlap": False}
        x = alt.X("x:N", title=None, sort=names, axis=alt.Axis(**bare, labelAngle=-90 if len(names) > 3 else 0))
        y = alt.Y("y:N", title=None, sort=names, axis=alt.Axis(**bare))
        scale = alt.Scale(domain=[-1, 0, 1], range="diverging", interpolate="rgb")
        legend = alt.Legend(title=f"{self.method} rank correlation", values=[-1, 0, 1])
        tooltip = [
            alt.Tooltip("x:N"),
            alt.Tooltip("y:N"),
            alt.Tooltip("value:Q", format=".3f", title="correlation"),
            alt.Tooltip("count:Q", format=",", title="rows"),
        ]
        base = chart_of([row for row in rows if row["value"] is not None] or rows).encode(x=x, y=y, tooltip=tooltip)
        layers: list[Any] = [
            base.mark_rect(style="cell").encode(color=alt.Color("value:Q", scale=scale, legend=legend))
        ]
        if len(names) <= NUMBERS_UP_TO:
            # Black letters on strong cells can be read in both themes.
            numbers = base.encode(text=alt.Text("value:Q", format=".2f"))
            layers.append(numbers.transform_filter("abs(datum.value) <= 0.75").mark_text(style="weak_value"))
            layers.append(numbers.transform_filter("abs(datum.value) > 0.75").mark_text(style="strong_value"))
        return dress(alt.layer(*layers).properties(width=side, height=side))
