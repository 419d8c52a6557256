"""Decision curve: the net benefit of acting on scores, at every threshold, beside acting on all rows and on none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import share_inside
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.error_guarantee import at_least
from calibrant.core.statistics.estimate import Estimate
from calibrant.core.statistics.mean_of_levels import mean_of_levels
from calibrant.core.text.number_format import join_clauses, percent
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import chart_of, colour, names_in
from calibrant.figures._task import task_of

if TYPE_CHECKING:
    import altair as alt

POINTS = 99
ENDS = (0.05, 0.1, 0.2, 0.5, 0.99)  # of the axis, where it is not given
TIMES = 5  # as far as so many times the base rate


@dataclass(frozen=True)
class DecisionCurve(PredictionFigure):
    """True positives less false ones per row, a false one weighed by the odds of the threshold, with 95 % intervals.

    A threshold of t means that a missed positive is as bad as (1 - t) / t false alarms: read the curve at yours, not at
    its highest point. `highest` ends the axis (default: five times the base rate, rounded up). Of predictions that are
    not binary it is the benefit of acting on the predicted class against its correctness.

    >>> p = Predictions.binary([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> row = DecisionCurve(highest=0.99).data({"demo": p})[49]
    >>> round(row["threshold"], 2), round(row["benefit"], 3), round(row["all"], 3)
    (0.5, 0.0, 0.0)
    """

    highest: float | None = None

    title: ClassVar[str] = "Decision curve"
    reference: ClassVar[str] = "Vickers, Elkin, Medical Decision Making 2006"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.highest is not None:
            share_inside("highest", self.highest)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        task = task_of(models)
        rate = max(p.mean(p.outcome) for p in models.values())
        end = self.highest or next((end for end in ENDS if end >= TIMES * rate), ENDS[-1])
        rows = []
        for name, p in models.items():
            for t in np.linspace(0, end, POINTS + 1)[1:]:
                threshold = min(float(t), 0.99)
                benefit = net_benefit(p, threshold)
                low, high = benefit.limits()
                row = {"model": name, "task": task, "threshold": float(t), "benefit": benefit.value}
                rows.append(row | {"low": low, "high": high, "all": p.mean(gains(p, threshold)), "none": 0.0})
        return rows

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for name in names_in(rows):
            useful = [row["threshold"] for row in rows if row["model"] == name and row["low"] > max(row["all"], 0.0)]
            range_of = f"from a threshold of {percent(useful[0])} to {percent(useful[-1])}" if useful else "nowhere"
            sentences.append(f"the interval of {name} lies above both {range_of}")
        title = "Net benefit of acting on rows that reach a threshold, against the threshold, with 95 % intervals"
        return f"{title}; dashed, acting on all and on none. Here {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        names = names_in(rows)
        most = max(1.05 * max(row["high"] for row in rows), 1e-3)
        share = rows[0]["task"] == "binary"
        what = "threshold of P(positive)" if share else "threshold of the confidence"

        def y(field: str) -> alt.Y:
            scale = alt.Scale(domain=[-most / 4, most], clamp=True)
            return alt.Y(f"{field}:Q", title="net benefit per row", scale=scale)

        base = chart_of(rows).encode(
            x=alt.X("threshold:Q", title=what, axis=alt.Axis(format="~%", tickCount=5), scale=alt.Scale(nice=False)),
            color=colour(names, line=True),
        )
        tooltip = [
            alt.Tooltip("model:N"),
            alt.Tooltip("threshold:Q", format=".2%"),
            alt.Tooltip("benefit:Q", format=".4f", title="net benefit"),
            alt.Tooltip("low:Q", format=".4f"),
            alt.Tooltip("high:Q", format=".4f"),
            alt.Tooltip("all:Q", format=".4f", title="acting on all"),
        ]
        band = base.mark_area(opacity=0.18, tooltip=None).encode(y=y("low"), y2=alt.Y2("high:Q"))
        lines = base.mark_line(style="curve").encode(y=y("benefit"), tooltip=tooltip)
        first = [row for row in rows if row["model"] == names[0]]
        others = chart_of(
            [
                {"threshold": row["threshold"], "kind": kind, "benefit": row[kind]}
                for kind in ("all", "none")
                for row in first
                if row[kind] >= -most / 4
            ]
        )
        defaults = others.mark_line(style="diagonal").encode(
            x=alt.X("threshold:Q"), y=y("benefit"), detail=alt.Detail("kind:N")
        )
        crossing = min((row for row in first if row["all"] > 0), key=lambda row: row["all"], default=first[0])
        none, on_all = (
            chart_of([{"threshold": at, "benefit": 0.0, "kind": kind}]).encode(
                x=alt.X("threshold:Q"), y=y("benefit"), text=alt.Text("kind:N")
            )
            for at, kind in ((first[-1]["threshold"], "on none"), (crossing["threshold"], "on all"))
        )
        notes = (
            none.mark_text(align="right", baseline="top", dx=-4, dy=4, style="note"),
            on_all.mark_text(align="left", baseline="bottom", dx=4, dy=-4, style="note"),
        )
        return dress(alt.layer(band, defaults, lines, *notes).properties(width=WIDTH, height=200))


def gains(p: Predictions, threshold: float) -> Array:
    """The gain of acting on each row: a true positive counts 1, a false one minus t/(1 - t)."""
    return np.where(p.outcome, 1.0, -threshold / (1 - threshold))


def net_benefit(p: Predictions, threshold: float) -> Estimate:
    """The net benefit TP/n - FP/n t/(1 - t) of acting on the rows that reach a threshold t below one.

    >>> p = Predictions.binary([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> net_benefit(p, 0.5).value  # one true and one false positive
    0.0
    """
    acted = at_least(p.score, threshold)
    possible = np.array([1.0, 0.0, -threshold / (1 - threshold)])
    possible = possible[np.array([acted.any(), not acted.all(), acted.any()])]
    return mean_of_levels(p, np.where(acted, gains(p, threshold), 0.0), possible)
