"""Precision and recall: how pure the rows above a threshold are, and how many of the positive ones they hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import average_precision
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import join_clauses, percent
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import chart_of, colour, names_in, unit_x, unit_y
from calibrant.figures._task import positive_curves
from calibrant.figures._thin import thin

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class PrecisionRecall(PredictionFigure):
    """Share of positives among the rows above a threshold, against the share of all positives that lie above it.

    A model without skill stays at the share of positives, the dotted line; the left end rests on few rows. Of two
    classes, class 1 is positive.

    >>> rows = PrecisionRecall().data({"demo": Predictions.binary([0.9, 0.8, 0.7], [1, 0, 1])})
    >>> [(row["recall"], round(row["precision"], 3)) for row in rows]
    [(0.5, 1.0), (0.5, 0.5), (1.0, 0.667)]
    """

    title: ClassVar[str] = "Precision and recall"
    reference: ClassVar[str] = "Davis, Goadrich, ICML 2006"

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        curves = positive_curves("precision_recall", models)
        return [row for name, curve in curves.items() for row in _curve(name, curve)]

    def words(self, rows: list[Row]) -> str:
        facts = {row["model"]: row for row in rows}
        known = [
            f"{name} {row['average_precision']:.4f} (by chance {percent(row['positives'])})"
            for name, row in facts.items()
            if row["average_precision"] is not None
        ]
        unknown = [name for name, row in facts.items() if row["average_precision"] is None]
        title = "Share of positives among the rows above a threshold (precision) against the share of positives found"
        areas = f" Average precision: {join_clauses(known)}." if known else ""
        return f"{title}.{areas}" + (
            f" Undefined for {join_clauses(unknown)}: all rows are of one kind." if unknown else ""
        )

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        tooltip = [
            alt.Tooltip("model:N"),
            alt.Tooltip("threshold:Q", format=".2%", title="P(positive) from"),
            alt.Tooltip("precision:Q", format=".1%"),
            alt.Tooltip("recall:Q", format=".1%"),
            alt.Tooltip("average_precision:Q", format=".4f", title="average precision"),
        ]
        title = "precision (positives among those flagged)"
        base = chart_of(rows).encode(x=unit_x("recall", "recall (positive rows found)"), tooltip=tooltip)
        lines = base.mark_line(style="curve").encode(
            y=unit_y("precision", title), order=alt.Order("place:Q"), color=colour(names_in(rows), line=True)
        )
        # Without a colour: as a part of the legend it would make every line there look dotted.
        chance = base.mark_line(style="noise").encode(y=unit_y("positives", title), detail=alt.Detail("model:N"))
        return dress(alt.layer(chance, lines).properties(width=WIDTH, height=WIDTH))


def _curve(name: str, curve: Curve) -> list[Row]:
    positives_at, negatives_at = (group[::-1] for group in curve.groups)
    share = float(positives_at.sum() / curve.total)
    if share in (0.0, 1.0):
        none = dict.fromkeys(("recall", "precision", "threshold"))
        return [{"model": name, "place": 0, **none, "positives": share, "average_precision": None}]
    positives, flagged = np.cumsum(positives_at), np.cumsum(positives_at + negatives_at)
    recall, precision = positives / positives[-1], positives / flagged
    threshold, area = curve.scores[curve.group_ends - 1][::-1], average_precision([(positives_at, negatives_at)])
    return [
        {
            "model": name,
            "place": place,
            "recall": float(recall[i]),
            "precision": float(precision[i]),
            "threshold": float(threshold[i]),
            "positives": share,
            "average_precision": area,
        }
        for place, i in enumerate(thin(recall + flagged / flagged[-1]))
    ]
