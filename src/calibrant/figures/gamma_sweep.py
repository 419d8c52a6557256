"""Measures against gamma: what a focal or clamping parameter does."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.text.number_format import join_clauses, significant
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._checks import choose_columns, numbers, require, some, text
from calibrant.figures._layers import chart_of, colour, names_in, side_by_side

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

MOST_PANELS = 8
MOST_VALUES = 500  # of gamma


@dataclass(frozen=True)
class GammaSweep(TableFigure):
    """One panel per column of numbers, against the column `gamma`; runs with the same gamma give a mean and a range.

    Column `model` where there are several; `of=ece+nll` chooses the columns. The gamma with the lowest error on the
    data that chose it is optimistic. Missing values are left out.

    >>> import polars as pl
    >>> rows = GammaSweep().data(pl.DataFrame({"gamma": [0.0, 0.0, 1.0], "ece": [0.25, 0.75, 0.25]}))
    >>> [(row["gamma"], row["value"], row["low"], row["high"]) for row in rows]
    [(0.0, 0.5, 0.25, 0.75), (1.0, 0.25, 0.25, 0.25)]
    """

    of: str | None = None

    title: ClassVar[str] = "Measures against gamma"
    reference: ClassVar[str] = "Tang, Chen, Ho, Neural Clamping, TMLR 2024, figure 2"
    columns: ClassVar[tuple[str, ...]] = ("gamma",)

    def data(self, table: "pl.DataFrame") -> list[Row]:
        require("gamma_sweep", table, self.columns, numeric=self.columns)
        measures = choose_columns("gamma_sweep", table, self.of, not_of=("gamma", "seed", "run"))
        if len(measures) > MOST_PANELS:
            raise InputError(
                "table of gamma_sweep",
                expected=f"at most {MOST_PANELS} measures",
                got=str(len(measures)),
                fix=f"choose some: gamma_sweep:of={'+'.join(measures[:2])}",
            )
        models = np.array(text(table["model"])) if "model" in table.columns else np.full(table.height, "model")
        gamma, rows = numbers(table["gamma"]), []
        if len(np.unique(gamma)) > MOST_VALUES:
            raise InputError(
                "table of gamma_sweep",
                expected=f"at most {MOST_VALUES} values of gamma",
                got=str(len(np.unique(gamma))),
                fix="round them, or draw study_scatter:x=gamma",
            )
        for measure in measures:
            values = numbers(table[measure])
            for model in dict.fromkeys(models.tolist()):
                usable = (models == model) & np.isfinite(gamma) & np.isfinite(values)
                for at in np.unique(gamma[usable]):
                    own = values[usable & (gamma == at)]
                    known = {"model": model, "measure": measure, "gamma": float(at), "count": len(own)}
                    rows.append(known | {"value": float(own.mean()), "low": float(own.min()), "high": float(own.max())})
        return some("gamma_sweep", rows)

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for measure in names_in(rows, "measure"):
            for model in names_in(rows):
                own = [row for row in rows if (row["measure"], row["model"]) == (measure, model)]
                if not own:
                    continue
                least = min(own, key=lambda row: row["value"])
                several = f" of {model}" if len(names_in(rows)) > 1 else ""
                sentences.append(
                    f"{measure}{several} is lowest, {significant(least['value'])}, at gamma {least['gamma']:g}"
                )
        return f"Measures against gamma. In this sweep {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        names, measures = names_in(rows), names_in(rows, "measure")
        per_line = 1 if len(measures) <= 3 else 2
        panels = [
            _panel([row for row in rows if row["measure"] == m], m, names, last=i + per_line >= len(measures))
            for i, m in enumerate(measures)
        ]
        return dress(side_by_side(panels, per_line))


def _panel(rows: list[Row], measure: str, names: list[str], *, last: bool) -> Any:
    import altair as alt

    x = alt.X("gamma:Q", title="gamma" if last else None, scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=6))
    y: dict[str, Any] = {"title": measure, "scale": alt.Scale(zero=False), "axis": alt.Axis(tickCount=4)}
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("gamma:Q"),
        alt.Tooltip("value:Q", format=".4f", title=measure),
        alt.Tooltip("count:Q", title="runs"),
    ]
    base = chart_of(rows).encode(x=x, color=colour(names, line=True), tooltip=tooltip)
    lines = base.mark_line(style="curve").encode(y=alt.Y("value:Q", **y))
    dots = base.mark_circle(style="curve_dot").encode(y=alt.Y("value:Q", **y))
    layers = [lines, dots]
    if any(row["high"] > row["low"] for row in rows):
        layers.insert(1, base.mark_area(style="band").encode(y=alt.Y("low:Q", **y), y2="high:Q"))
    return alt.layer(*layers).properties(width=WIDTH, height=96)
