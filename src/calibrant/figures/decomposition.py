"""A score as the sum of its parts: what calibration costs, and what refinement leaves."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.text.number_format import significant
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._checks import numbers, plain, require, some, text
from calibrant.figures._layers import chart_of, colour, names_in

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

WHOLE = "uncertainty"
FIRST = ["refinement", "calibration"]  # what can be repaired has the colour of a warning


@dataclass(frozen=True)
class Decomposition(TableFigure):
    """Parts of a score, stacked for each model: the bar is the score.

    Columns `model`, `part`, `value`, one row each; `score` where there are several ("nll", "brier"). The part named
    `uncertainty` is no summand: it is drawn as a tick, the score of knowing the base rate alone. Parts without a
    value are left out; a part below zero (noise of cross-fitting) is drawn to the left of zero.

    >>> import polars as pl
    >>> table = pl.DataFrame({"model": ["CE"] * 2, "part": ["calibration", "refinement"], "value": [0.1, 0.3]})
    >>> [(row["part"], row["low"], row["high"]) for row in Decomposition().data(table)]
    [('calibration', 0.0, 0.1), ('refinement', 0.1, 0.4)]
    """

    title: ClassVar[str] = "Decomposition of a score"
    reference: ClassVar[str] = "Murphy, J. Applied Meteorology 1973; Berta, Bach, Jordan, 2024"
    columns: ClassVar[tuple[str, ...]] = ("model", "part", "value")

    def data(self, table: "pl.DataFrame") -> list[Row]:
        require("decomposition", table, self.columns, numeric=("value",))
        scores = text(table["score"]) if "score" in table.columns else ["score"] * table.height
        columns = zip(scores, text(table["model"]), text(table["part"]), numbers(table["value"]), strict=True)
        rows: list[Row] = []
        ends: dict[tuple[str, str, bool], float] = {}
        for score, model, part, value in columns:
            if not np.isfinite(value):
                continue
            above = value >= 0 and part != WHOLE
            start = 0.0 if part == WHOLE else ends.get((score, model, above), 0.0)
            end = start + float(value)
            if part != WHOLE:
                ends[score, model, above] = end
            known = {"score": score, "model": model, "part": part, "value": float(value)}
            rows.append(known | {"low": min(start, end), "high": max(start, end)})
        return some("decomposition", rows)

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for score in names_in(rows, "score"):
            for model in names_in(rows):
                own = [row for row in rows if (row["score"], row["model"]) == (score, model)]
                parts = " + ".join(f"{row['part']} {significant(row['value'])}" for row in own if row["part"] != WHOLE)
                total = plain(sum(row["value"] for row in own if row["part"] != WHOLE))
                whole = [
                    f", where the base rate alone gives {significant(row['value'])}"
                    for row in own
                    if row["part"] == WHOLE
                ]
                if parts and total is not None:
                    sentences.append(f"{model}, {score}: {parts} = {significant(total)}{''.join(whole)}.")
        return f"Scores as sums of their parts; lower is better. {' '.join(sentences)}".rstrip()

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        panels = [_panel([row for row in rows if row["score"] == s], s) for s in names_in(rows, "score")]
        return dress(panels[0] if len(panels) == 1 else alt.vconcat(*panels, spacing=14))


def _panel(rows: list[Row], score: str) -> Any:
    import altair as alt

    models = names_in(rows)
    names = [part for part in names_in(rows, "part") if part != WHOLE]
    parts = sorted(names, key=FIRST.index) if set(names) <= set(FIRST) else names
    whole = [row for row in rows if row["part"] == WHOLE]
    title, width = (f"{score} (line: base rate alone)" if whole else score), WIDTH - 44
    tooltip = [alt.Tooltip("model:N"), alt.Tooltip("part:N"), alt.Tooltip("value:Q", format=".4f")]
    y = alt.Y("model:N", title=None, sort=models, axis=alt.Axis(ticks=False, domain=False))
    bars = (
        chart_of([row for row in rows if row["part"] != WHOLE])
        .mark_bar(height={"band": 0.65})
        .encode(
            x=alt.X("low:Q", title=title, axis=alt.Axis(tickCount=4)),
            x2=alt.X2("high:Q"),
            y=y,
            color=colour(parts, "part"),
            tooltip=tooltip,
        )
    )
    totals = [
        {"model": m, "total": sum(row["value"] for row in rows if row["model"] == m and row["part"] != WHOLE)}
        for m in models
    ]
    numbers_right = chart_of(totals).mark_text(style="value", align="left", x=width + 6, tooltip=None)
    layers = [bars, numbers_right.encode(y=y, text=alt.Text("total:Q", format=".4f"))]
    if whole:
        ticks = chart_of(whole).mark_tick(style="total", thickness=2, height={"band": 0.9})
        layers.append(ticks.encode(x=alt.X("value:Q", title=title), y=y, tooltip=tooltip))
    return alt.layer(*layers, width=width, height=max(22 * len(models), 30))
