"""CORP reliability diagram: isotonic regression instead of bins, and where a calibrated model would lie."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import at_least, share_inside
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.corp import consistency_band, corp_terms
from calibrant.core.statistics.isotonic import fit_isotonic
from calibrant.core.text.number_format import level, sentence, whole_percent
from calibrant.core.text.theme import WIDTH, dress
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
from calibrant.figures._task import task_of, terms_for

if TYPE_CHECKING:
    import altair as alt

POINTS = 50  # places of the band between the ends of steps, by score and by rank
STEPS = 60  # of the fit that are drawn with both ends
FIELDS = ("confidence", "accuracy", "low", "high")


@dataclass(frozen=True)
class Corp(PredictionFigure):
    """Isotonic regression of outcomes on scores, with the band in which calibrated scores lie (90 % pointwise).

    The band is around the diagonal, not around the curve: where the curve leaves it, chance alone rarely goes. It is
    pointwise, so a calibrated curve leaves a 90 % band at about a tenth of the scores. `scale=logit` spreads rare
    events out.

    >>> p = Predictions.binary([0.2, 0.2, 0.8, 0.8] * 5, [0, 1, 1, 1] * 5)
    >>> rows = Corp().data({"demo": p})
    >>> [round(rows[0][part], 4) for part in ("brier", "miscalibration", "discrimination", "uncertainty")]
    [0.19, 0.065, 0.0625, 0.1875]
    """

    level: float = 0.9
    scale: Literal["linear", "logit"] = "linear"
    resamples: int = 200
    seed: int = 0

    title: ClassVar[str] = "CORP reliability diagram"
    reference: ClassVar[str] = "Dimitriadis, Gneiting, Jordan, PNAS 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        share_inside("level", self.level)
        at_least("resamples", self.resamples, 20)
        at_least("seed", self.seed, 0)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        task = task_of(models)
        return [{"task": task, **row} for name, p in models.items() for row in self._curve(name, p)]

    def words(self, rows: list[Row]) -> str:
        words = terms_for(rows)
        band = f"the band holds {level(self.level)} of calibrated scores at each place"
        title = f"{sentence(words.rate)} against {words.score}, by isotonic regression; {band}"
        sentences = []
        for name in names_in(rows):
            own = [row for row in rows if row["model"] == name]
            outside = sum(row["share"] for row in own if not row["low"] <= row["accuracy"] <= row["high"])
            parts = ", ".join(
                f"{part} {own[0][part]:.4f}" for part in ("miscalibration", "discrimination", "uncertainty")
            )
            sentences.append(
                f"{name}: outside the band for {whole_percent(outside)} of the rows; Brier score "
                f"{own[0]['brier']:.4f} ({parts})."
            )
        return f"{title}. {' '.join(sentences)}"

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        panels = [
            _panel([row for row in rows if row["model"] == name], rows, name, self.scale) for name in names_in(rows)
        ]
        return dress(side_by_side(panels))

    def _curve(self, name: str, p: Predictions) -> list[Row]:
        curve = p.curve
        x, fitted = fit_isotonic(curve.scores, curve.outcomes, curve.weights)
        at = _places(curve, x, fitted)
        clusters = None if p.clusters is None else np.unique(p.clusters[curve.order], return_inverse=True)[1]
        low, high = consistency_band(
            curve, at, level=self.level, resamples=self.resamples, seed=self.seed, clusters=clusters
        )
        edges = np.concatenate([[-np.inf], (at[1:] + at[:-1]) / 2])
        share = np.diff(curve.weight_sum[np.searchsorted(curve.scores, edges)], append=curve.total) / curve.total
        brier, log = corp_terms(curve), corp_terms(curve, "log")
        known = {
            "model": name,
            "brier": brier.score,
            "miscalibration": brier.miscalibration,
            "discrimination": brier.discrimination,
            "uncertainty": brier.uncertainty,
            "log": log.score,
            "log_miscalibration": log.miscalibration,
            "log_discrimination": log.discrimination,
            "log_uncertainty": log.uncertainty,
        }
        columns = {"confidence": at, "accuracy": np.interp(at, x, fitted), "low": low, "high": high, "share": share}
        lists = {key: values.tolist() for key, values in columns.items()}
        return [known | dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _places(curve: Curve, x: Array, fitted: Array) -> Array:
    """Scores at which the curve and its band are drawn: ends of the longest steps, and more between them."""
    first = np.flatnonzero(np.diff(fitted, prepend=-1.0) > 1e-12)
    last = np.append(first[1:] - 1, len(x) - 1)
    longest = np.argsort(x[first] - x[last], kind="stable")[:STEPS]
    by_rank = curve.scores[np.linspace(0, curve.n - 1, POINTS).astype(np.int64)]
    by_score = np.linspace(curve.scores[0], curve.scores[-1], POINTS)
    return np.unique(np.concatenate([x[first[longest]], x[last[longest]], by_rank, by_score]))


def _panel(rows: list[Row], every: list[Row], name: str, scale: str) -> Any:
    import altair as alt

    words = terms_for(rows)
    tooltip = [
        alt.Tooltip("confidence:Q", format=".1%", title=words.score),
        alt.Tooltip("accuracy:Q", format=".1%", title=words.rate),
        alt.Tooltip("low:Q", format=".1%", title="calibrated from"),
        alt.Tooltip("high:Q", format=".1%", title="calibrated to"),
    ]
    if scale == "logit":
        base, axes = logit_fields(chart_of(rows), FIELDS), logit_axes(every, ("confidence", "accuracy"))
        x = alt.X("confidence_logit:Q", title=words.score, **axes)
        y, low, high = (
            *(alt.Y(f"{field}_logit:Q", title=words.rate, **axes) for field in ("accuracy", "low")),
            alt.Y2("high_logit:Q"),
        )
    else:
        base, high = chart_of(rows), alt.Y2("high:Q")
        x, y, low = unit_x("confidence", words.score), unit_y("accuracy", words.rate), unit_y("low", words.rate)
    band = base.mark_area(style="band").encode(x=x, y=low, y2=high, tooltip=tooltip)
    line = base.mark_line(style="curve").encode(x=x, y=y, tooltip=tooltip)
    parts = [("MCB", "miscalibration"), ("DSC", "discrimination"), ("UNC", "uncertainty")]
    notes = [
        chart_of([{"note": f"{short} {rows[0][part]:.4f}"}])
        .mark_text(style="note", align="left", baseline="top", x=6, y=5 + 14 * i, tooltip=None)
        .encode(text=alt.Text("note:N"))
        for i, (short, part) in enumerate(parts)
    ]
    return alt.layer(band, diagonal(), line, *notes, width=WIDTH, height=WIDTH, title=name)
