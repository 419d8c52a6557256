"""Reliability of single classes: a small diagram for each of the worst."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.config.bounds import at_least, at_most, share_inside
from calibrant.core.curves.binning import Scheme
from calibrant.core.curves.curve import Bins
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import join_clauses
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._classes import class_bins, class_curve, class_errors, worst
from calibrant.figures._layers import chart_of, colour, diagonal, names_in, side_by_side, unit_x, unit_y
from calibrant.figures._task import count_of, require_task
from calibrant.figures._whiskers import bin_whiskers, known_clusters, whisker_words

if TYPE_CHECKING:
    import altair as alt

MOST_CLASSES = 24
SIDE = (WIDTH - 24) // 2  # two diagrams in a line are as wide as one figure


@dataclass(frozen=True)
class ClasswiseReliability(PredictionFigure):
    """For the worst classes: how often a row is of the class, against the probability the class is given.

    Each class is looked at over all rows, most of which give it nearly nothing: larger dots hold more rows. Whiskers
    are Wilson intervals, as in the reliability diagram. Classes are counted from 0; the worst are chosen over all.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> [(row["class"], row["confidence"], row["accuracy"]) for row in ClasswiseReliability(bins=1).data({"demo": p})]
    [(0, 0.75, 0.5), (1, 0.25, 0.5)]
    """

    classes: int = 4
    bins: int = 10
    scheme: Scheme = "width"
    level: float = 0.95

    title: ClassVar[str] = "Reliability of the worst classes"
    reference: ClassVar[str] = "Kull et al., NeurIPS 2019"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("classes", self.classes, 1)
        at_least("bins", self.bins, 1)
        at_most("classes", self.classes, MOST_CLASSES)
        share_inside("level", self.level)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        require_task("classwise_reliability", models, ("multiclass", "binary"))
        bins = {name: class_bins(p, self.bins, self.scheme) for name, p in models.items()}
        rows = []
        for c in worst(bins, self.classes):
            for name, b in bins.items():
                error = float(class_errors(b)[c])
                p, of_class = models[name], Bins(b.count[c], b.score_sum[c], b.outcome_sum[c], b.n, b.weight_unit)
                low, high = bin_whiskers(p, partial(class_curve, p, c), of_class, self.scheme, self.level)
                for m in np.flatnonzero(b.filled[c]):
                    rows.append(
                        {
                            "model": name,
                            "class": c,
                            "error": error,
                            "bin": int(m) + 1,
                            "count": count_of(b.count[c, m]),
                            "share": float(b.share[c, m]),
                            "confidence": float(b.confidence[c, m]),
                            "accuracy": float(b.accuracy[c, m]),
                            "gap": float(b.gap[c, m]),
                            "low": low[m],
                            "high": high[m],
                            **known_clusters(p),
                        }
                    )
        return rows

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for name in names_in(rows):
            errors = {row["class"]: row["error"] for row in rows if row["model"] == name}
            sentences.append(f"{name}: " + ", ".join(f"class {c} {error:.4f}" for c, error in errors.items()))
        count = len(names_in(rows, "class"))
        title = f"Reliability of the {count} worst classes" if count > 1 else "Reliability of the worst class"
        whiskers = whisker_words(rows, self.level) if any("clusters" in row for row in rows) else ""
        bins = f"{self.bins} equal-{self.scheme} bins{'; ' if whiskers else ''}{whiskers}"
        return f"{title} in {bins}. Their calibration errors: {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        names, classes = names_in(rows), names_in(rows, "class")
        most = max(row["count"] for row in rows)
        panels = [
            _panel([row for row in rows if row["class"] == c], c, names, most, at=i, of=len(classes))
            for i, c in enumerate(classes)
        ]
        return dress(side_by_side(panels, 2 if len(panels) <= 4 else 4))


def _panel(rows: list[Row], c: Any, names: list[str], most: int, *, at: int, of: int) -> Any:
    import altair as alt

    per_line = 2 if of <= 4 else 4
    x_title = "probability" if at + per_line >= of else None
    y_title = "frequency" if at % per_line == 0 else None
    ticks = {"values": [0, 0.5, 1]}
    left = ticks | {"labels": at % per_line == 0, "minExtent": 0}
    x, y = unit_x("confidence", x_title, **ticks), unit_y("accuracy", y_title, **left)
    size = alt.Size("count:Q", scale=alt.Scale(type="log", domain=[1, max(most, 2)], range=[6, 90]), legend=None)
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("confidence:Q", format=".2%", title="probability"),
        alt.Tooltip("accuracy:Q", format=".2%", title="frequency"),
        alt.Tooltip("gap:Q", format="+.2%"),
        alt.Tooltip("count:Q", format=",", title="rows"),
    ]
    base = chart_of(rows).encode(color=colour(names), tooltip=tooltip)
    known = base.transform_filter("isValid(datum.low)")
    whiskers = known.mark_rule(style="class_whisker").encode(x=x, y=unit_y("low", y_title, **left), y2="high:Q")
    lines = base.mark_line(style="class_line").encode(x=x, y=y)
    dots = base.mark_circle(style="class_dot").encode(x=x, y=y, size=size)
    side = SIDE if of > 1 else WIDTH
    return alt.layer(diagonal(), whiskers, lines, dots).properties(width=side, height=side, title=f"class {c}")
