"""Two columns of a study against each other, one dot per network."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.config.bounds import at_least
from calibrant.core.curves.ranking import kendall
from calibrant.core.errors import InputError
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._checks import numbers, plain, require, some, text
from calibrant.figures._layers import chart_of, colour, names_in

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

MOST_KINDS = 8


@dataclass(frozen=True)
class StudyScatter(TableFigure):
    """Column y against column x, coloured by a third; Kendall's tau-b of the two over all rows.

    Of more than `most` rows a seeded sample is drawn; tau counts them all. A correlation over a mixed population says
    little about the good networks alone: draw those too. Rows without x or y are left out.

    >>> import polars as pl
    >>> rows = StudyScatter(x="accuracy", y="ece").data(pl.DataFrame({"accuracy": [0.9, 0.8], "ece": [0.1, 0.2]}))
    >>> [(row["x"], row["y"], row["tau"]) for row in rows]
    [(0.9, 0.1, -1.0), (0.8, 0.2, -1.0)]
    """

    x: str = "accuracy"
    y: str = "ece"
    colour: str | None = None
    most: int = 2000
    seed: int = 0

    title: ClassVar[str] = "Scatter plot of a study"
    reference: ClassVar[str] = "Tao et al., A Benchmark Study on Calibration, ICLR 2024"
    columns: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("most", self.most, 1)
        at_least("seed", self.seed, 0)

    def data(self, table: "pl.DataFrame") -> list[Row]:
        require("study_scatter", table, [c for c in (self.x, self.y, self.colour) if c], numeric=(self.x, self.y))
        x, y = numbers(table[self.x]), numbers(table[self.y])
        index = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        tau, n = kendall(x[index], y[index]), len(index)
        if n > self.most:
            index = np.sort(np.random.default_rng(self.seed).choice(index, size=self.most, replace=False))
        shade = self._shade(table)
        known = {"tau": plain(tau), "rows": n}
        rows = [{"x": float(x[i]), "y": float(y[i]), "colour": shade[i] if shade else None, **known} for i in index]
        return some("study_scatter", rows)

    def words(self, rows: list[Row]) -> str:
        n, tau = rows[0]["rows"], rows[0]["tau"]
        title = f"Scatter of {self.y} against {self.x}, {n:,} rows" + (
            f" ({len(rows):,} drawn)" if len(rows) < n else ""
        )
        value = "undefined, for one of them is constant" if tau is None else f"{tau:.2f}"
        return f"{title}. Kendall's tau-b is {value}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        tooltip = [alt.Tooltip("x:Q", format=".4g", title=self.x), alt.Tooltip("y:Q", format=".4g", title=self.y)]
        scale, axis = alt.Scale(zero=False, nice=False, padding=6), alt.Axis(tickCount=5)
        cloud = (
            chart_of(rows)
            .mark_circle(style="cloud")
            .encode(
                x=alt.X("x:Q", title=self.x, scale=scale, axis=axis),
                y=alt.Y("y:Q", title=self.y, scale=scale, axis=axis),
            )
        )
        shade: Any = None
        if self.colour and all(isinstance(row["colour"], str) for row in rows):
            shade = colour(names_in(rows, "colour"), "colour")
        elif self.colour:
            legend = alt.Legend(title=self.colour, tickCount=3)
            shade = alt.Color("colour:Q", scale=alt.Scale(range="ramp"), legend=legend)
        if shade is not None:
            cloud = cloud.encode(color=shade)
            tooltip.append(alt.Tooltip("colour:N", title=self.colour))
        return dress(cloud.encode(tooltip=tooltip).properties(width=WIDTH, height=190))

    def _shade(self, table: "pl.DataFrame") -> list[Any] | None:
        if self.colour is None:
            return None
        if table[self.colour].dtype.is_numeric():
            return [plain(value) for value in numbers(table[self.colour])]
        kinds = text(table[self.colour])
        if len(set(kinds)) > MOST_KINDS:
            raise InputError(
                f"study_scatter:colour={self.colour}",
                expected=f"numbers, or at most {MOST_KINDS} different words",
                got=str(len(set(kinds))),
                fix="choose another column",
            )
        return kinds
