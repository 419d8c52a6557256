"""Reliability diagram: what a model says against how often it is right."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from calibrant.core.config.bounds import at_least, share_inside
from calibrant.core.curves.binning import Binning, Scheme, equal_width_edges
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.clustered_shares import cluster_obstacle
from calibrant.core.text.number_format import percent, sentence, whole_percent
from calibrant.core.text.theme import WIDTH, dress
from calibrant.core.text.vocabulary import Vocabulary
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import (
    chart_of,
    diagonal,
    logit_axes,
    logit_fields,
    names_in,
    side_by_side,
    unit_x,
    unit_y,
)
from calibrant.figures._slider import bin_rows, cells, slider
from calibrant.figures._task import count_of, task_of, terms_for
from calibrant.figures._whiskers import bin_whiskers, bin_worth, known_clusters, whisker_words

if TYPE_CHECKING:
    import altair as alt

PLAIN = 40  # bins up to which whiskers are drawn in full


@dataclass(frozen=True)
class Reliability(PredictionFigure):
    """Confidence and accuracy of every filled bin, the gap between them, and how sure the accuracy is (Wilson).

    Bins with few rows have wide intervals: a gap inside its interval is no evidence. Rows in clusters count as the
    independent rows that would vary as much; fewer than ten clusters have no whiskers. `slider=true` adds what a page
    needs to change the number of bins; `scale=logit` spreads rare events out (bins of equal mass suit it).

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> (row,) = Reliability(bins=2).data({"demo": p})
    >>> row["gap"], row["share"]  # both in the upper bin: says 0.75, is right 0.5
    (0.25, 1.0)
    """

    bins: int = 15
    scheme: Scheme = "width"
    level: float = 0.95
    slider: bool = False
    scale: Literal["linear", "logit"] = "linear"

    title: ClassVar[str] = "Reliability diagram"
    reference: ClassVar[str] = "DeGroot, Fienberg, The Statistician 1983; Wilson, JASA 1927 (intervals)"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("bins", self.bins, 1)
        share_inside("level", self.level)

    def for_page(self) -> Self:
        return replace(self, slider=True)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        """A row per filled bin; with the slider, one more row a model that holds its cells as lists."""
        task = task_of(models)
        rows = [{"task": task, **row} for name, p in models.items() for row in self._bins(name, p, task)]
        for name, p in models.items() if self.slider else ():
            known = {"task": task, "part": "cells", "model": name, "whiskers": cluster_obstacle(p) is None}
            worth = None if p.clusters is None else bin_worth(p, p.curve, self.bins, self.scheme)
            rows.append(known | cells(p.curve, self.scheme, worth))
        return rows

    def words(self, rows: list[Row]) -> str:
        kind = "equal-width" if self.scheme == "width" else "equal-mass"
        own, words = _only("bin", rows), terms_for(rows)
        sentences = [_sentence(name, [row for row in own if row["model"] == name], words) for name in names_in(rows)]
        bins = f"{self.bins} {kind} bins{' to begin with' if self.slider else ''}"
        whiskers = whisker_words(own, self.level)
        return f"{sentence(words.rate)} against {words.score} in {bins}; {whiskers}. {' '.join(sentences)}"

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        # Whiskers of hundreds of bins would cover everything: the more there are, the paler they get.
        fade = alt.expr(f"min(1, {PLAIN} / bins)") if self.slider else min(1.0, PLAIN / self.bins)
        panels = []
        for name in names_in(rows):
            own = [row for row in rows if row["model"] == name]
            cells = _only("cells", own)
            words, most = terms_for(rows), None if self.slider else max(row["share"] for row in rows)
            base = bin_rows(cells[0], self.scheme, self.level, words) if self.slider else chart_of(_only("bin", own))
            counts = self.scheme == "width" and self.scale == "linear"
            odds = logit_axes(_only("bin", rows), ("confidence", "accuracy")) if self.scale == "logit" else None
            panels.append(_panel(base, name, fade, words, most, counts=counts, odds=odds))
        chart = side_by_side(panels)
        return dress(chart.add_params(slider(_only("cells", rows), self.bins)) if self.slider else chart)

    def _bins(self, name: str, p: Predictions, task: str) -> list[Row]:
        curve, words = p.curve, terms_for([{"task": task}])
        b = curve.bins(Binning(self.bins, self.scheme))
        ends = np.cumsum(b.count)
        first = curve.weight_sum.searchsorted(ends - b.count, "right")
        last = curve.weight_sum.searchsorted(ends, "left")
        low, high = bin_whiskers(p, lambda: curve, b, self.scheme, self.level)
        edges = equal_width_edges(self.bins)
        rows = []
        for m in np.flatnonzero(b.filled):
            by_mass = self.scheme == "mass"
            rows.append(
                {
                    "model": name,
                    "part": "bin",
                    "bin": int(m) + 1,
                    "low_edge": float(curve.scores[first[m] - 1] if by_mass else edges[m]),
                    "high_edge": float(curve.scores[min(last[m], curve.n) - 1] if by_mass else edges[m + 1]),
                    "count": count_of(b.count[m]),
                    "share": float(b.share[m]),
                    "confidence": float(b.confidence[m]),
                    "accuracy": float(b.accuracy[m]),
                    "gap": float(b.gap[m]),
                    "side": words.side_over if b.gap[m] > 0 else words.side_under,
                    "low": low[m],
                    "high": high[m],
                    **known_clusters(p),
                }
            )
        return rows


def _panel(
    base: Any,
    name: str,
    fade: Any,
    words: Vocabulary,
    most: float | None,
    *,
    counts: bool,
    odds: dict[str, Any] | None = None,
) -> Any:
    """One diagram; `odds` are scale and axis of log-odds, in place of those of shares."""
    import altair as alt

    end = "" if odds is None else "_logit"
    if odds is not None:
        base = logit_fields(base, ("low_edge", "high_edge", "confidence", "accuracy", "low", "high"))

    def along(field: str, title: str | None, **bare: Any) -> Any:
        return unit_x(field, title, **bare) if odds is None else alt.X(f"{field}{end}:Q", title=title, **odds)

    def up(field: str) -> Any:
        return unit_y(field, words.rate) if odds is None else alt.Y(f"{field}{end}:Q", title=words.rate, **odds)

    bare = {"labels": False, "ticks": False} if counts else {}  # the counts below carry the axis
    title = None if counts else words.score
    x = {"x": along("low_edge", title, **bare), "x2": f"high_edge{end}:Q"}
    at = along("confidence", title, **bare)
    tooltip = [
        alt.Tooltip("confidence:Q", format=".2%", title=words.score),
        alt.Tooltip("accuracy:Q", format=".2%", title=words.rate),
        alt.Tooltip("gap:Q", format="+.2%"),
        alt.Tooltip("count:Q", format=",", title="rows"),
        alt.Tooltip("low:Q", format=".1%", title=f"{words.rate} from"),
        alt.Tooltip("high:Q", format=".1%", title=f"{words.rate} to"),
    ]
    side = alt.Color(
        "side:N",
        scale=alt.Scale(domain=[words.side_under, words.side_over]),
        legend=alt.Legend(title=None, symbolOpacity=0.6),
    )
    y = up("accuracy")
    gaps = base.mark_rect(style="gap").encode(**x, y=y, y2=f"confidence{end}:Q", color=side, tooltip=tooltip)
    steps = base.mark_rule(style="accuracy").encode(**x, y=y, tooltip=tooltip)
    whiskers = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(style="whisker", opacity=fade)
        .encode(x=at, y=up("low"), y2=f"high{end}:Q", tooltip=tooltip)
    )
    dots = base.mark_circle(style="dot", opacity=fade).encode(x=at, y=y, tooltip=tooltip)
    ece = (
        base.transform_calculate(weighted="datum.share * abs(datum.gap)")
        .transform_aggregate(ece="sum(weighted)")
        .transform_calculate(note="'ECE ' + format(datum.ece, '.4f')")
        .mark_text(style="note", align="left", baseline="top", x=6, y=5, tooltip=None)
        .encode(text=alt.Text("note:N"))
    )
    diagram = alt.layer(gaps, diagonal(), steps, whiskers, dots, ece)
    if not counts:
        return diagram.properties(width=WIDTH, height=WIDTH, title=name)
    scale = alt.Undefined if most is None else alt.Scale(domain=[0, most])  # the same in every panel
    bars = base.mark_rect(style="count").encode(
        x=unit_x("low_edge", words.score),
        x2=alt.X2("high_edge:Q"),
        y=alt.Y("share:Q", title="rows", scale=scale, axis=alt.Axis(format=".0%", tickCount=2)),
        y2=alt.datum(0),
        tooltip=tooltip,
    )
    diagram = diagram.properties(width=WIDTH, height=WIDTH)
    return alt.vconcat(diagram, bars.properties(width=WIDTH, height=44), spacing=8).properties(title=name)


def _only(part: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def _sentence(name: str, rows: list[Row], words: Vocabulary) -> str:
    n = round(sum(row["count"] for row in rows))
    score, right = (sum(row["share"] * row[of] for row in rows) for of in ("confidence", "accuracy"))
    ece = sum(row["share"] * abs(row["gap"]) for row in rows)
    sure = sum(row["share"] for row in rows if row["gap"] > 0)
    if words.outcome == "positive":
        return (
            f"{name} gives {percent(score)} on average and {percent(right)} of {n:,} rows are positive, ECE {ece:.4f}; "
            f"{whole_percent(sure)} of its rows are in bins whose scores are too high."
        )
    return (
        f"{name} says {percent(score)} on average and is right {percent(right)} of {n:,} times, ECE {ece:.4f}; "
        f"{whole_percent(sure)} of its rows are in overconfident bins."
    )
