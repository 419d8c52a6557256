"""Base class of `roc` and `correctness_roc`: two shares of rows above a threshold, as it falls."""

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import area_under_roc
from calibrant.core.text.number_format import join_clauses
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import falling_threshold
from calibrant.figures._thin import thin

if TYPE_CHECKING:
    import altair as alt


class Share(NamedTuple):
    """A share of rows above the threshold."""

    column: str
    axis: str
    tooltip: str


class ROCFigure(PredictionFigure):
    """The share of rows with outcome 1 above a threshold against that of rows with outcome 0; an entry names both."""

    ones: ClassVar[Share]
    zeros: ClassVar[Share]
    area: ClassVar[tuple[str, str]]  # column and title of the area under the curve
    threshold: ClassVar[str]  # title
    sentence: ClassVar[str]
    undefined: ClassVar[str]  # why a model has no curve

    def curve(self, name: str, curve: Curve) -> list[Row]:
        """Rows of one model: its places on the curve, or a single row without numbers where there is no curve."""
        ones, zeros = (group[::-1] for group in curve.groups)
        n_ones, n_zeros = float(ones.sum()), float(zeros.sum())
        columns = (self.zeros.column, self.ones.column, "threshold", self.area[0])
        if not n_ones or not n_zeros:
            return [{"model": name, "place": 0, **dict.fromkeys(columns)}]
        y = np.concatenate([[0.0], np.cumsum(ones) / n_ones])
        x = np.concatenate([[0.0], np.cumsum(zeros) / n_zeros])
        threshold = np.concatenate([[1.0], curve.scores[curve.group_ends - 1][::-1]])
        area = area_under_roc(curve.group_blocks())
        places = [(float(x[i]), float(y[i]), float(threshold[i]), area) for i in thin(x + y)]
        return [
            {"model": name, "place": place, **dict(zip(columns, values, strict=True))}
            for place, values in enumerate(places)
        ]

    def words(self, rows: list[Row]) -> str:
        areas = {row["model"]: row[self.area[0]] for row in rows}
        known = [f"{name} {area:.4f}" for name, area in areas.items() if area is not None]
        unknown = [name for name, area in areas.items() if area is None]
        area_words = f" Area under the curve: {join_clauses(known)}." if known else ""
        return (
            self.sentence
            + area_words
            + (f" Undefined for {join_clauses(unknown)}: {self.undefined}." if unknown else "")
        )

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        tooltip = [
            alt.Tooltip("threshold:Q", format=".2%", title=self.threshold),
            *(alt.Tooltip(f"{share.column}:Q", format=".1%", title=share.tooltip) for share in (self.ones, self.zeros)),
            alt.Tooltip(f"{self.area[0]}:Q", format=".4f", title=self.area[1]),
        ]
        return falling_threshold(rows, x=self.zeros[:2], y=self.ones[:2], tooltip=tooltip)
