"""Confidence of correct and of incorrect predictions, as densities."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import at_least
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import percent
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._kernel import grid, smooth
from calibrant.figures._layers import chart_of, names_in, side_by_side, unit_x
from calibrant.figures._task import task_of, terms_for

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class ConfidenceDensity(PredictionFigure):
    """How sure the model is when it is right, and when it is wrong: the less the two overlap, the better refined.

    Both areas are 1, however many rows there are of each: the figure does not show accuracy. Gaussian kernel reflected
    at 0 and 1, Silverman's bandwidth, at least `narrowest`.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> rows = ConfidenceDensity().data({"demo": p})
    >>> [(row["outcome"], row["mean"]) for row in (rows[0], rows[-1])]
    [('correct', 0.9), ('incorrect', 0.6)]
    """

    narrowest: float = 0.03

    title: ClassVar[str] = "Confidence of correct and incorrect predictions"
    reference: ClassVar[str] = "Singh et al., On the Dark Side of Calibration, 2021, figures 1 and 2"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("narrowest", self.narrowest, 0.001)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        rows = []
        task = task_of(models)
        words = terms_for([{"task": task}])
        for name, p in models.items():
            w = np.ones(p.n) if p.weights is None else p.weights
            for outcome, mask in ((words.outcome, p.outcome & (w > 0)), (words.miss, ~p.outcome & (w > 0))):
                values, shares = p.score[mask], w[mask] / w[mask].sum()
                if not len(values):
                    continue  # a model that is never wrong has one density
                (density,) = smooth(values, [shares], self._bandwidth(values))
                known = {"task": task, "model": name, "outcome": outcome, "count": len(values)}
                known["mean"] = float(shares @ values)
                points = zip(grid().tolist(), np.maximum(density, 0).tolist(), strict=True)
                rows += [known | {"confidence": at, "density": height} for at, height in points]
        return rows

    def words(self, rows: list[Row]) -> str:
        sentences, words = [], terms_for(rows)
        for name in names_in(rows):
            facts = {row["outcome"]: row for row in rows if row["model"] == name}
            phrases = [
                f"{row['count']:,} {key} with mean {words.score} {percent(row['mean'])}" for key, row in facts.items()
            ]
            missing = [f"no {outcome} ones" for outcome in (words.outcome, words.miss) if outcome not in facts]
            sentences.append(f"{name} has {' and '.join(phrases + missing)}.")
        what = "rows" if words.outcome == "positive" else "predictions"
        return f"Densities of the {words.score} of {words.outcome} and {words.miss} {what}. {' '.join(sentences)}"

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        names, most = names_in(rows), max(row["density"] for row in rows)
        panels = [_panel([row for row in rows if row["model"] == name], name, most) for name in names]
        return dress(side_by_side(panels))

    def _bandwidth(self, values: Array) -> float:
        low, high = np.quantile(values, [0.25, 0.75])
        spread = min(float(values.std()), float(high - low) / 1.34) or float(values.std())
        return float(np.clip(0.9 * spread * len(values) ** -0.2, self.narrowest, max(self.narrowest, 0.2)))


def _panel(rows: list[Row], name: str, most: float) -> Any:
    import altair as alt

    base = chart_of(rows)
    words = terms_for(rows)
    x = unit_x("confidence", words.score)
    outcome = alt.Color("outcome:N", scale=alt.Scale(domain=[words.outcome, words.miss]), legend=alt.Legend(title=None))
    tooltip = [
        alt.Tooltip("outcome:N"),
        alt.Tooltip("confidence:Q", format=".1%", title=words.score),
        alt.Tooltip("density:Q", format=".3g"),
        alt.Tooltip("count:Q", format=",", title="rows"),
    ]
    y = alt.Y(
        "density:Q",
        title="density",
        stack=None,
        scale=alt.Scale(domain=[0, most], nice=False),
        axis=alt.Axis(tickCount=4),
    )
    areas = base.mark_area(style="density", line=True).encode(x=x, y=y, color=outcome, tooltip=tooltip)
    means = (
        base.transform_aggregate(mean="mean(mean)", groupby=["outcome"])
        .mark_rule(style="mean")
        .encode(x=alt.X("mean:Q"), color=outcome, tooltip=["outcome:N", alt.Tooltip("mean:Q", format=".1%")])
    )
    return alt.layer(areas, means, width=WIDTH, height=160, title=name)
