"""Worst classes: a heat map of class against probability."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.config.bounds import at_least, at_most
from calibrant.core.curves.binning import equal_width_edges
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import join_clauses
from calibrant.core.text.theme import dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._classes import class_bins, class_errors, worst
from calibrant.figures._layers import chart_of, names_in, side_by_side, unit_axis
from calibrant.figures._task import count_of, require_task

if TYPE_CHECKING:
    import altair as alt

MOST_CLASSES = 60


@dataclass(frozen=True)
class WorstClasses(PredictionFigure):
    """Gap between probability and frequency by class and bin, for the classes with the largest error.

    Bins of fewer than `few` rows are drawn pale: their gap is mostly noise. The bars are the classes' own calibration
    errors, whose mean over all classes is the measure `classwise`.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> [(row["class"], row["gap"]) for row in WorstClasses(bins=1).data({"demo": p})]
    [(0, 0.25), (1, -0.25)]
    """

    classes: int = 12
    bins: int = 10
    few: int = 10

    title: ClassVar[str] = "Gaps of the worst classes"
    reference: ClassVar[str] = "Nixon et al., CVPR workshops 2019; Kull et al., NeurIPS 2019"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("classes", self.classes, 1)
        at_least("bins", self.bins, 1)
        at_least("few", self.few, 1)
        at_most("classes", self.classes, MOST_CLASSES)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        require_task("worst_classes", models, ("multiclass", "binary"))
        bins = {name: class_bins(p, self.bins, "width") for name, p in models.items()}
        edges, rows = equal_width_edges(self.bins), []
        for c in worst(bins, self.classes):
            for name, b in bins.items():
                error = float(class_errors(b)[c])
                for m in np.flatnonzero(b.filled[c]):
                    rows.append(
                        {
                            "model": name,
                            "class": c,
                            "error": error,
                            "bin": int(m) + 1,
                            "low_edge": float(edges[m]),
                            "high_edge": float(edges[m + 1]),
                            "count": count_of(b.count[c, m]),
                            "share": float(b.share[c, m]),
                            "gap": float(b.gap[c, m]),
                            "few": bool(b.count[c, m] < self.few),
                        }
                    )
        return rows

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for name in names_in(rows):
            errors = {row["class"]: row["error"] for row in rows if row["model"] == name}
            first = max(errors, key=lambda c: errors[c])
            sentences.append(f"for {name} class {first} has the largest error, {errors[first]:.4f}")
        count = len(names_in(rows, "class"))
        title = f"Gap between probability and frequency by class and bin, for {count} classes with the largest errors"
        return f"{title}; bins of fewer than {self.few} rows are pale. Of these, {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        names, most = names_in(rows), max(row["error"] for row in rows)
        return dress(
            side_by_side([_panel([row for row in rows if row["model"] == name], name, most) for name in names])
        )


def _panel(rows: list[Row], name: str, most: float) -> Any:
    import altair as alt

    classes = names_in(rows, "class")
    height = 15 * len(classes)
    y = alt.Y("class:O", title="class", sort=classes, axis=alt.Axis(grid=False, ticks=False, domain=False))
    axis = unit_axis(grid=False, values=[0, 0.5, 1])
    x = alt.X("low_edge:Q", title="probability", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)
    gap = alt.Color(
        "gap:Q",
        scale=alt.Scale(domain=[-0.5, 0, 0.5], range="diverging", clamp=True, interpolate="rgb"),
        legend=alt.Legend(title="probability minus frequency", format=".0%", values=[-0.5, 0, 0.5]),
    )
    tooltip = [
        alt.Tooltip("class:O"),
        alt.Tooltip("low_edge:Q", format=".0%", title="probability from"),
        alt.Tooltip("high_edge:Q", format=".0%", title="probability to"),
        alt.Tooltip("gap:Q", format="+.2%"),
        alt.Tooltip("count:Q", format=",", title="rows"),
    ]
    pale = alt.condition("datum.few", alt.value(0.35), alt.value(1))
    base = chart_of(rows)
    cells = base.mark_rect(style="cell").encode(x=x, x2="high_edge:Q", y=y, color=gap, opacity=pale, tooltip=tooltip)
    errors = base.transform_aggregate(error="mean(error)", groupby=["class"]).encode(
        x=alt.X(
            "error:Q",
            title="error",
            scale=alt.Scale(domain=[0, 1.9 * most], nice=False),  # room for the numbers behind the bars
            axis=alt.Axis(labels=False, ticks=False, grid=False, domain=False, titleAnchor="start"),
        ),
        y=alt.Y("class:O", title=None, sort=classes, axis=None),
        tooltip=[alt.Tooltip("class:O"), alt.Tooltip("error:Q", format=".4f", title="calibration error")],
    )
    bars = errors.mark_bar(style="count", height={"band": 0.6})
    text = errors.mark_text(style="value", align="left", dx=3).encode(text=alt.Text("error:Q", format=".4f"))
    left, right = cells.properties(width=168, height=height), alt.layer(bars, text).properties(width=76, height=height)
    return alt.hconcat(left, right, spacing=8).properties(title=name)
