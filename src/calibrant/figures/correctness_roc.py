"""ROC of correctness: how well confidence tells right predictions from wrong ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import join_clauses
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import falling_threshold
from calibrant.figures._thin import thin

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class CorrectnessROC(PredictionFigure):
    """Share of correct predictions kept against share of incorrect ones kept, as the confidence threshold falls.

    Blind to calibration. A model that is always right, or always wrong, has no such curve: one row says so.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], labels=[0, 1, 0])
    >>> rows = CorrectnessROC().data({"demo": p})
    >>> rows[0]["auroc"], [(row["incorrect"], row["correct"]) for row in rows]
    (1.0, [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (1.0, 1.0)])
    """

    title: ClassVar[str] = "ROC of correctness"
    reference: ClassVar[str] = "Hendrycks, Gimpel, ICLR 2017"

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        return [row for name, p in models.items() for row in _curve(name, p.top_label)]

    def words(self, rows: list[Row]) -> str:
        areas = {row["model"]: row["auroc"] for row in rows}
        known = [f"{name} {area:.4f}" for name, area in areas.items() if area is not None]
        unknown = [name for name, area in areas.items() if area is None]
        drawn = "Share of correct predictions kept against share of incorrect ones kept, as the threshold falls."
        said = f" Area under the curve: {join_clauses(known)}." if known else ""
        if unknown:
            said += f" Undefined for {join_clauses(unknown)}: no error, or nothing but errors."
        return drawn + said

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        tooltip = [
            alt.Tooltip("threshold:Q", format=".2%", title="confidence from"),
            alt.Tooltip("correct:Q", format=".1%", title="correct kept"),
            alt.Tooltip("incorrect:Q", format=".1%", title="incorrect kept"),
            alt.Tooltip("auroc:Q", format=".4f", title="AUROC"),
        ]
        return falling_threshold(
            rows,
            x=("incorrect", "incorrect predictions kept"),
            y=("correct", "correct predictions kept"),
            tooltip=tooltip,
        )


def _curve(name: str, curve: Curve) -> list[Row]:
    hits, misses = (group[::-1] for group in curve.groups)
    right, wrong = float(hits.sum()), float(misses.sum())
    if not right or not wrong:
        return [{"model": name, "place": 0, "incorrect": None, "correct": None, "threshold": None, "auroc": None}]
    correct = np.concatenate([[0.0], np.cumsum(hits) / right])
    incorrect = np.concatenate([[0.0], np.cumsum(misses) / wrong])
    auroc = float(np.diff(incorrect) @ (correct[1:] + correct[:-1]) / 2)
    threshold = np.concatenate([[1.0], curve.scores[curve.group_ends - 1][::-1]])
    return [
        {
            "model": name,
            "place": place,
            "incorrect": float(incorrect[i]),
            "correct": float(correct[i]),
            "threshold": float(threshold[i]),
            "auroc": auroc,
        }
        for place, i in enumerate(thin(correct + incorrect))
    ]
