"""ECE and MCE against the number of bins: how much of the number is the bins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.config.bounds import at_least
from calibrant.core.curves.binning import Binning, Scheme
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import join_clauses
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import chart_of, colour, names_in
from calibrant.figures._task import task_of

if TYPE_CHECKING:
    import altair as alt

COUNTS = (10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class BinsSweep(PredictionFigure):
    """The binned errors at 10 to 1000 bins, beside what a perfectly calibrated model of as many rows would show.

    More bins raise both errors by noise alone; only what lies above the dotted line is miscalibration. The line is the
    mean over `draws` sets of labels drawn from the model's own confidence.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> [row["value"] for row in BinsSweep().data({"demo": p}) if row["bins"] == 10]
    [0.35, 0.6]
    """

    scheme: Scheme = "width"
    draws: int = 20
    seed: int = 0

    title: ClassVar[str] = "Calibration error against the number of bins"
    reference: ClassVar[str] = "Wang, Golebiowski, Towards Unbiased Calibration, TMLR 2024, figure 5"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("draws", self.draws, 1)
        at_least("seed", self.seed, 0)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        rows = []
        task = task_of(models)
        for name, p in models.items():
            values, noise = self._errors(p.curve), self._noise(p.curve)
            for m, measure in enumerate(("ECE", "MCE")):
                for b, count in enumerate(COUNTS):
                    known = {"task": task, "model": name, "measure": measure, "bins": count}
                    rows.append(known | {"value": float(values[b, m]), "noise": float(noise[b, m])})
        return rows

    def words(self, rows: list[Row]) -> str:
        ece = {(row["model"], row["bins"]): row for row in rows if row["measure"] == "ECE"}
        sentences = [
            f"{name} from {ece[name, COUNTS[0]]['value']:.4f} to {ece[name, COUNTS[-1]]['value']:.4f}, "
            f"where noise alone gives {ece[name, COUNTS[-1]]['noise']:.4f}"
            for name in names_in(rows)
        ]
        title = f"ECE and MCE with {COUNTS[0]} to {COUNTS[-1]} equal-{self.scheme} bins"
        return f"{title}; dotted, what a perfectly calibrated model would show. ECE goes for {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        names = names_in(rows)
        panels = [_panel([row for row in rows if row["measure"] == m], m, names) for m in ("ECE", "MCE")]
        return dress(alt.vconcat(*panels, spacing=12))

    def _errors(self, curve: Curve) -> Any:
        gaps = [curve.bins(Binning(count, self.scheme)) for count in COUNTS]
        return np.array([[b.share @ np.abs(b.gap), np.abs(b.gap[b.filled]).max()] for b in gaps])  # (counts, 2)

    def _noise(self, curve: Curve) -> Any:
        rng = np.random.default_rng(self.seed)
        draws = [(rng.random(curve.n) < curve.scores).astype(np.float64) for _ in range(self.draws)]
        return np.mean([self._errors(curve.with_outcomes(outcomes)) for outcomes in draws], axis=0)


def _panel(rows: list[Row], measure: str, names: list[str]) -> Any:
    import altair as alt

    last = measure == "MCE"
    axis = alt.Axis(values=list(COUNTS), labels=last, ticks=last, format="d")
    x = alt.X("bins:Q", title="number of bins" if last else None, scale=alt.Scale(type="log", nice=False), axis=axis)
    y: dict[str, Any] = {"title": measure, "axis": alt.Axis(format="%", tickCount=4)}
    tooltip = [
        alt.Tooltip("model:N"),
        alt.Tooltip("bins:Q"),
        alt.Tooltip("value:Q", format=".4f", title=measure),
        alt.Tooltip("noise:Q", format=".4f", title="by noise alone"),
    ]
    base = chart_of(rows).encode(x=x, color=colour(names, line=True), tooltip=tooltip)
    lines = base.mark_line(style="curve").encode(y=alt.Y("value:Q", **y))
    dots = base.mark_circle(style="curve_dot").encode(y=alt.Y("value:Q", **y))
    noise = base.mark_line(style="noise").encode(y=alt.Y("noise:Q", **y))
    return alt.layer(lines, dots, noise, width=WIDTH, height=110)
