"""ROC: how many positive rows are found, and at the price of how many false alarms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import area_under_roc
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import join_clauses
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import falling_threshold
from calibrant.figures._task import positive_curves
from calibrant.figures._thin import thin

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class ROC(PredictionFigure):
    """Share of the positive rows above a threshold against the share of the negative ones, as the threshold falls.

    Blind to calibration and to how rare positives are: `precision_recall` is not. Of two classes, class 1 is positive.

    >>> rows = ROC().data({"demo": Predictions.binary([0.9, 0.6, 0.7], [1, 0, 1])})
    >>> rows[0]["roc_auc"], [(row["false_alarms"], row["found"]) for row in rows]
    (1.0, [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (1.0, 1.0)])
    """

    title: ClassVar[str] = "ROC"
    reference: ClassVar[str] = "Hanley, McNeil, Radiology 1982"

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        return [row for name, curve in positive_curves("roc", models).items() for row in _curve(name, curve)]

    def words(self, rows: list[Row]) -> str:
        areas = {row["model"]: row["roc_auc"] for row in rows}
        known = [f"{name} {area:.4f}" for name, area in areas.items() if area is not None]
        unknown = [name for name, area in areas.items() if area is None]
        drawn = "Share of positive rows found against share of negative rows flagged, as the threshold falls."
        said = f" Area under the curve: {join_clauses(known)}." if known else ""
        return drawn + said + (f" Undefined for {join_clauses(unknown)}: all rows are of one kind." if unknown else "")

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        tooltip = [
            alt.Tooltip("threshold:Q", format=".2%", title="P(positive) from"),
            alt.Tooltip("found:Q", format=".1%", title="positive rows found"),
            alt.Tooltip("false_alarms:Q", format=".1%", title="negative rows flagged"),
            alt.Tooltip("roc_auc:Q", format=".4f", title="ROC AUC"),
        ]
        return falling_threshold(
            rows,
            x=("false_alarms", "negative rows flagged (false alarms)"),
            y=("found", "positive rows found"),
            tooltip=tooltip,
        )


def _curve(name: str, curve: Curve) -> list[Row]:
    hits, misses = (group[::-1] for group in curve.groups)
    positives, negatives = float(hits.sum()), float(misses.sum())
    if not positives or not negatives:
        none = dict.fromkeys(("false_alarms", "found", "threshold", "roc_auc"))
        return [{"model": name, "place": 0, **none}]
    recall = np.concatenate([[0.0], np.cumsum(hits) / positives])
    alarms = np.concatenate([[0.0], np.cumsum(misses) / negatives])
    threshold = np.concatenate([[1.0], curve.scores[curve.group_ends - 1][::-1]])
    area = area_under_roc(curve.group_blocks())
    return [
        {
            "model": name,
            "place": place,
            "false_alarms": float(alarms[i]),
            "found": float(recall[i]),
            "threshold": float(threshold[i]),
            "roc_auc": area,
        }
        for place, i in enumerate(thin(recall + alarms))
    ]
