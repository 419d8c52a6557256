"""Measures of several models or calibrators side by side, with their intervals."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.text.number_format import join_clauses, significant
from calibrant.core.text.theme import dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._checks import numbers, plain, require, some, text
from calibrant.figures._layers import chart_of, names_in, side_by_side

if TYPE_CHECKING:
    import altair as alt
    import polars as pl


@dataclass(frozen=True)
class BeforeAfter(TableFigure):
    """One panel per measure, one dot per model, lines for intervals: "uncalibrated" beside every calibrator.

    Columns `model`, `measure`, `value`; `low` and `high` where there are intervals, `better` ("lower" or "higher")
    where that is known. Overlapping intervals do not mean equal models: on the same rows use paired tests. Rows
    without a value are left out.

    >>> import polars as pl
    >>> table = pl.DataFrame({"model": ["before", "after"], "measure": ["ece", "ece"], "value": [0.07, 0.02]})
    >>> [(row["model"], row["value"]) for row in BeforeAfter().data(table)]
    [('before', 0.07), ('after', 0.02)]
    """

    title: ClassVar[str] = "Measures before and after"
    columns: ClassVar[tuple[str, ...]] = ("model", "measure", "value")

    def data(self, table: "pl.DataFrame") -> list[Row]:
        ends = [column for column in ("low", "high") if column in table.columns]
        require("before_after", table, self.columns, numeric=("value", *ends))
        value = numbers(table["value"])
        low, high = (numbers(table[end]) if end in ends else np.full(table.height, np.nan) for end in ("low", "high"))
        better = text(table["better"]) if "better" in table.columns else [""] * table.height
        known = zip(text(table["model"]), text(table["measure"]), better, value, low, high, strict=True)
        rows = [
            {"model": model, "measure": m, "better": b, "value": float(v), "low": plain(lo), "high": plain(hi)}
            for model, m, b, v, lo, hi in known
            if np.isfinite(v)
        ]
        return some("before_after", rows)

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for measure in names_in(rows, "measure"):
            own = [row for row in rows if row["measure"] == measure]
            values = ", ".join(f"{row['model']} {significant(row['value'])}" for row in own)
            better = f" ({own[0]['better']} is better)" if own[0]["better"] else ""
            sentences.append(f"{measure}{better}: {values}")
        return f"Measures of {len(names_in(rows))} models, lines are intervals where known. {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        models, measures = names_in(rows), names_in(rows, "measure")
        panels = [
            _panel([row for row in rows if row["measure"] == measure], measure, models, labels=i % 2 == 0)
            for i, measure in enumerate(measures)
        ]
        return dress(side_by_side(panels, 2))


def _panel(rows: list[Row], measure: str, models: list[str], *, labels: bool) -> Any:
    import altair as alt

    better = f" ({rows[0]['better']} is better)" if rows[0]["better"] else ""
    axis = alt.Axis(ticks=False, domain=False, grid=True, labels=labels)
    y = alt.Y("model:N", title=None, sort=models, scale=alt.Scale(domain=models), axis=axis)
    scale, ticks = alt.Scale(zero=False, padding=8), alt.Axis(tickCount=3)
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("value:Q", format=".4f", title=measure),
        alt.Tooltip("low:Q", format=".4f", title="from"),
        alt.Tooltip("high:Q", format=".4f", title="to"),
    ]
    base = chart_of(rows).encode(y=y, tooltip=tooltip)
    title = f"{measure}{better}"
    lines = base.mark_rule(style="interval").encode(x=alt.X("low:Q", title=title, scale=scale, axis=ticks), x2="high:Q")
    dots = base.mark_circle(style="estimate").encode(x=alt.X("value:Q", title=title, scale=scale, axis=ticks))
    return alt.layer(lines, dots).properties(width=96, height=max(18 * len(models), 36))
