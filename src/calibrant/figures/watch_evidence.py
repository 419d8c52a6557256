"""The evidence of a watch over time, and the limit at which it raises an alarm."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.text.number_format import join_clauses, significant
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._checks import numbers, require, some, text
from calibrant.figures._layers import chart_of, colour, names_in
from calibrant.figures._thin import thin

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

LEAST, MOST = 1e-3, 1e3  # of the evidence that is drawn, the upper end in limits: far away it says no more


@dataclass(frozen=True)
class WatchEvidence(TableFigure):
    """Evidence against calibrated scores after so many rows, on a logarithmic axis, with the limit of an alarm.

    Columns `row`, `evidence` and `limit` as `Watch.history` gives them, and `model` where there are several segments.
    Evidence below 0.001 or above 1,000 limits is drawn there.

    >>> import polars as pl
    >>> rows = WatchEvidence().data(pl.DataFrame({"row": [1, 2], "evidence": [1.5, 30.0], "limit": [20.0, 20.0]}))
    >>> [(row["row"], row["evidence"]) for row in rows]
    [(1.0, 1.5), (2.0, 30.0)]
    """

    title: ClassVar[str] = "Evidence of a watch"
    reference: ClassVar[str] = "Arnold, Henzi, Ziegel, 2023"
    columns: ClassVar[tuple[str, ...]] = ("row", "evidence", "limit")

    def data(self, table: "pl.DataFrame") -> list[Row]:
        require("watch_evidence", table, self.columns, numeric=self.columns)
        models = np.array(text(table["model"])) if "model" in table.columns else np.full(table.height, "all rows")
        place, value, limit = (numbers(table[column]) for column in self.columns)
        known = np.isfinite(place) & np.isfinite(value) & np.isfinite(limit) & (limit > 0)
        rows: list[Row] = []
        for model in dict.fromkeys(models.tolist()):
            own = np.flatnonzero((models == model) & known)
            own = own[np.argsort(place[own], kind="stable")]
            for i in own[thin(place[own])] if len(own) else ():
                evidence = float(np.clip(value[i], LEAST, MOST * limit[i]))
                rows.append({"model": model, "row": float(place[i]), "evidence": evidence, "limit": float(limit[i])})
        return some("watch_evidence", rows)

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for model in names_in(rows):
            own = [row for row in rows if row["model"] == model]
            over = next((row for row in own if row["evidence"] >= row["limit"]), None)
            end = f"{model} {significant(own[-1]['evidence'])} of {significant(own[-1]['limit'])}"
            sentences.append(end if over is None else f"{end}, over the limit by row {over['row']:,.0f}")
        last = max((row["row"] for row in rows), default=0)
        return f"Evidence after {last:,.0f} rows, of the limit of an alarm: {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        names = names_in(rows)
        x = alt.X("row:Q", title="rows", scale=alt.Scale(nice=False))
        scale = alt.Scale(type="log", nice=False)
        tooltip = [alt.Tooltip("model:N"), alt.Tooltip("row:Q", format=","), alt.Tooltip("evidence:Q", format=".3g")]
        base = chart_of(rows).encode(x=x, tooltip=tooltip, color=colour(names, line=True))
        y = alt.Y("evidence:Q", title="evidence", scale=scale, axis=alt.Axis(tickCount=5, format=".0e"))
        line = base.mark_line(style="curve").encode(y=y)
        limit = base.mark_line(strokeDash=[4, 3], strokeWidth=1).encode(y=alt.Y("limit:Q", scale=scale))
        return dress(alt.layer(line, limit).properties(width=WIDTH, height=160))
