"""Box plots of the columns of a study: how a number is spread over many networks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.text.number_format import join_clauses, significant
from calibrant.core.text.theme import dress
from calibrant.figures._base import Row, TableFigure
from calibrant.figures._boxes import panel, rows_of
from calibrant.figures._checks import choose_columns, numbers, require, some, text
from calibrant.figures._layers import names_in

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

MOST_KINDS = 8


@dataclass(frozen=True)
class StudyBoxes(TableFigure):
    """One box per column, over all rows of the table; `by` names a column that splits each box.

    All boxes share one axis: choose columns of one kind with `of=ece_5+ece_15+ece_100`, else all columns of numbers are
    drawn. Missing values are left out of their column.

    >>> import polars as pl
    >>> rows = StudyBoxes().data(pl.DataFrame({"ece_15": [0.1, 0.2, 0.3], "ece_100": [0.2, 0.3, 0.4]}))
    >>> [(row["group"], row["median"]) for row in rows if row["part"] == "box"]
    [('ece_15', 0.2), ('ece_100', 0.3)]
    """

    of: str | None = None
    by: str | None = None

    title: ClassVar[str] = "Box plots of a study"
    reference: ClassVar[str] = "Tao et al., A Benchmark Study on Calibration, ICLR 2024"
    columns: ClassVar[tuple[str, ...]] = ()

    def data(self, table: "pl.DataFrame") -> list[Row]:
        columns = choose_columns("study_boxes", table, self.of, not_of=[self.by or ""])
        require("study_boxes", table, [self.by] if self.by else [])
        kinds = np.array(text(table[self.by])) if self.by else np.full(table.height, "all")
        if len(set(kinds.tolist())) > MOST_KINDS:
            raise InputError(
                f"study_boxes:by={self.by}",
                expected=f"at most {MOST_KINDS} different values",
                got=str(len(set(kinds.tolist()))),
                fix="choose a column with fewer",
            )
        rows = []
        for column in columns:
            values = numbers(table[column])
            for kind in dict.fromkeys(kinds.tolist()):
                own = values[(kinds == kind) & np.isfinite(values)]
                if len(own):
                    rows += rows_of(own, {"group": column, "by": kind})
        return some("study_boxes", rows)

    def words(self, rows: list[Row]) -> str:
        boxes = [row for row in rows if row["part"] == "box"]
        several = len(names_in(rows, "by")) > 1
        phrases = [
            f"{row['group']} for {row['by']} {significant(row['median'])}"
            if several
            else f"{row['group']} {significant(row['median'])}"
            for row in boxes
        ]
        most = max((row["count"] for row in boxes), default=0)
        return f"Box plots of columns over up to {most:,} rows. Medians: {join_clauses(phrases)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        groups, kinds = names_in(rows, "group"), names_in(rows, "by")
        if not self.by:
            return dress(panel(rows, "value", groups))
        panels = [panel([row for row in rows if row["group"] == group], group, kinds, "by") for group in groups]
        return dress(alt.vconcat(*panels, spacing=10).resolve_scale(x="shared"))
