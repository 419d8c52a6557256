"""Reliability without bins: accuracy against confidence, both smoothed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import at_least, share_inside
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.kernels import smooth_error
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import level, sentence, whole_percent
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._kernel import grid, smooth
from calibrant.figures._layers import chart_of, diagonal, names_in, side_by_side, unit_x, unit_y
from calibrant.figures._task import task_of, terms_for

if TYPE_CHECKING:
    import altair as alt

FEWEST = 5.0  # rows under the kernel; with fewer the curve is not drawn
CELLS = 2048  # rows nearer than this share a cell in the bootstrap


@dataclass(frozen=True)
class SmoothReliability(PredictionFigure):
    """Smoothed accuracy against smoothed confidence, with the bandwidth of the measure `smooth`.

    Weighted by the density of rows, the gap to the diagonal averages to that measure. The band is a pointwise
    percentile bootstrap at a fixed bandwidth: it shows noise, not the bias of smoothing. The curve stops where fewer
    than 5 rows weigh in.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]] * 20, labels=[0, 1] * 20)
    >>> rows = SmoothReliability().data({"demo": p})
    >>> round(rows[0]["smooth"], 2), all(0 <= row["accuracy"] <= 1 for row in rows)
    (0.25, True)
    """

    level: float = 0.95
    resamples: int = 200
    seed: int = 0

    title: ClassVar[str] = "Smooth reliability diagram"
    reference: ClassVar[str] = "Blasiok, Nakkiran, ICLR 2024"

    def __post_init__(self) -> None:
        super().__post_init__()
        share_inside("level", self.level)
        at_least("resamples", self.resamples, 20)
        at_least("seed", self.seed, 0)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        task = task_of(models)
        return [{"task": task, **row} for name, p in models.items() for row in self._curve(name, p.curve)]

    def words(self, rows: list[Row]) -> str:
        words = terms_for(rows)
        band = f"with a {level(self.level)} bootstrap band"
        title = f"{sentence(words.rate)} against {words.score}, both smoothed, {band}"
        sentences = []
        for name in names_in(rows):
            own = [row for row in rows if row["model"] == name]
            mass = sum(row["density"] for row in own)
            sure = sum(row["density"] for row in own if row["confidence"] > row["high"]) / mass
            shy = sum(row["density"] for row in own if row["confidence"] < row["low"]) / mass
            below, above = whole_percent(sure), whole_percent(shy)
            where = f"the band lies below the diagonal for {below} of the rows and above it for {above}"
            sentences.append(f"{name}: smooth calibration error {own[0]['smooth']:.4f}; {where}.")
        return f"{title}. {' '.join(sentences)}"

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        names = names_in(rows)
        return dress(side_by_side([_panel([row for row in rows if row["model"] == name], name) for name in names]))

    def _curve(self, name: str, curve: Curve) -> list[Row]:
        ones = curve.weights / curve.total
        error, sigma = smooth_error(curve.scores, (curve.scores - curve.outcomes) * ones)
        density, outcomes, scores = smooth(curve.scores, [ones, ones * curve.outcomes, ones * curve.scores], sigma)
        weight = 2 * np.sqrt(np.pi) * sigma * curve.total * curve.weight_unit * density  # how many rows the kernel sees
        keep = np.flatnonzero(weight >= min(FEWEST, weight.max() / 2))
        density, outcomes, scores = density[keep], outcomes[keep], scores[keep]
        confidence, accuracy = scores / density, np.clip(outcomes / density, 0, 1)
        low, high = self._band(curve, grid()[keep], sigma, confidence)
        columns = {
            "confidence": confidence,
            "accuracy": accuracy,
            "low": np.minimum(low, accuracy),
            "high": np.maximum(high, accuracy),
            "density": density,
        }
        known = {"model": name, "smooth": error, "bandwidth": sigma}
        lists = {key: values.tolist() for key, values in columns.items()}
        return [known | dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]

    def _band(self, curve: Curve, t: Array, sigma: float, confidence: Array) -> tuple[Array, Array]:
        """Quantiles of the gap over resamples. Equal rows are drawn together: a multinomial over cells is the same."""
        cell = 2 * np.minimum((curve.scores * CELLS).astype(np.int64), CELLS - 1) + curve.outcomes.astype(np.int64)
        filled, of = np.unique(cell, return_inverse=True)
        count = np.bincount(of, curve.weights)
        score, outcome = np.bincount(of, curve.scores * curve.weights) / count, (filled % 2).astype(np.float64)
        worth = max(1, round(curve.total * curve.weight_unit))
        draws = np.random.default_rng(self.seed).multinomial(worth, count / count.sum(), size=self.resamples)
        kernel = sum(
            np.exp(-0.5 * ((t[:, None] - image) / sigma) ** 2)
            for turn in (-2.0, 0.0, 2.0)
            for image in (turn + score, turn - score)
        )  # (points, cells)
        below = np.maximum(draws @ np.asarray(kernel).T, 1e-300)
        gap = (draws * (score - outcome)) @ np.asarray(kernel).T / below
        tail = (1 - self.level) / 2
        most, least = np.quantile(gap, [1 - tail, tail], axis=0)
        return np.clip(confidence - most, 0, 1), np.clip(confidence - least, 0, 1)


def _panel(rows: list[Row], name: str) -> Any:
    import altair as alt

    words = terms_for(rows)
    tooltip = [
        alt.Tooltip("confidence:Q", format=".1%", title=words.score),
        alt.Tooltip("accuracy:Q", format=".1%", title=words.rate),
        alt.Tooltip("low:Q", format=".1%", title=f"{words.rate} from"),
        alt.Tooltip("high:Q", format=".1%", title=f"{words.rate} to"),
    ]
    base = chart_of(rows)
    bare = unit_x("confidence", None, labels=False, ticks=False)
    band = base.mark_area(style="band").encode(
        x=bare, y=unit_y("low", words.rate), y2=alt.Y2("high:Q"), tooltip=tooltip
    )
    line = base.mark_line(style="curve").encode(x=bare, y=unit_y("accuracy", words.rate), tooltip=tooltip)
    note = (
        chart_of([{"note": f"smECE {rows[0]['smooth']:.4f}"}])
        .mark_text(style="note", align="left", baseline="top", x=6, y=5, tooltip=None)
        .encode(text=alt.Text("note:N"))
    )
    density = base.mark_area(style="count").encode(
        x=unit_x("confidence", words.score),
        y=alt.Y("density:Q", title="density", axis=alt.Axis(labels=False, ticks=False, grid=False)),
        tooltip=tooltip,
    )
    diagram = alt.layer(band, diagonal(), line, note, width=WIDTH, height=WIDTH)
    return alt.vconcat(diagram, density.properties(width=WIDTH, height=44), spacing=8, title=name)
