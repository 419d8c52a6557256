"""Box plots over runs: does the difference between groups survive the seeds?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.text.number_format import join_clauses, significant
from calibrant.core.text.theme import dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._boxes import panel, rows_of
from calibrant.figures._checks import MOST_COLUMNS, numbers, require, some, text
from calibrant.figures._layers import names_in, side_by_side

if TYPE_CHECKING:
    import altair as alt
    import polars as pl


@dataclass(frozen=True)
class RunBoxes(TableFigure):
    """One box per group of runs, every run a dot (outliers only, above 30 runs).

    Columns `group` and `value`; `measure` where there are several, each in a panel of its own. With five runs the
    quartiles are nearly the runs themselves: look at the dots. Runs without a value are left out.

    >>> import polars as pl
    >>> rows = RunBoxes().data(pl.DataFrame({"group": ["random"] * 3, "value": [1.0, 2.0, 3.0]}))
    >>> rows[0]["median"], len(rows)
    (2.0, 4)
    """

    title: ClassVar[str] = "Box plots over runs"
    reference: ClassVar[str] = "Tang, Chen, Ho, Neural Clamping, TMLR 2024, figure 3"
    columns: ClassVar[tuple[str, ...]] = ("group", "value")

    def data(self, table: "pl.DataFrame") -> list[Row]:
        require("run_boxes", table, self.columns, numeric=("value",))
        values, groups = numbers(table["value"]), np.array(text(table["group"]))
        measures = np.array(text(table["measure"])) if "measure" in table.columns else np.full(table.height, "value")
        keys = list(dict.fromkeys(zip(measures.tolist(), groups.tolist(), strict=True)))
        if len(keys) > MOST_COLUMNS:
            raise InputError(
                "table of run_boxes",
                expected=f"at most {MOST_COLUMNS} boxes",
                got=f"{len(keys)} groups",
                fix="draw fewer groups or measures at a time",
            )
        rows = []
        for measure, group in keys:
            own = values[(measures == measure) & (groups == group) & np.isfinite(values)]
            if len(own):
                rows += rows_of(own, {"measure": measure, "group": group})
        return some("run_boxes", rows)

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for measure in names_in(rows, "measure"):
            own = [row for row in rows if row["part"] == "box" and row["measure"] == measure]
            phrases = [f"{row['group']} {significant(row['median'])} ({row['count']} runs)" for row in own]
            sentences.append(f"{measure}: {', '.join(phrases)}")
        return f"Box plots over runs; medians of {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        measures, groups = names_in(rows, "measure"), names_in(rows, "group")
        panels = [panel([row for row in rows if row["measure"] == m], m, groups) for m in measures]
        return dress(side_by_side(panels, 1 if len(panels) <= 3 else 2))
