"""Share of rows that can be answered with a guaranteed error rate, against that error rate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.config.bounds import share_inside
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.clustered_guarantee import rows_to_answer
from calibrant.core.text.number_format import join_clauses, percent
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import chart_of, colour, names_in, unit_y

if TYPE_CHECKING:
    import altair as alt

POINTS = 40


@dataclass(frozen=True)
class AnsweredShare(PredictionFigure):
    """How many rows can be answered, the rest handed over, so that the error rate is bounded with this confidence.

    Dotted, the share that would do on these very rows, without a guarantee for new ones. A map that keeps the order of
    confidences changes nothing here: only a model that tells right from wrong better does. Clusters count as wholes,
    and weights that are shares count, by a guarantee that answers fewer rows.

    >>> p = Predictions.from_confidence(np.linspace(0.5, 1, 200), np.ones(200))
    >>> row = AnsweredShare(highest=0.1).data({"demo": p})[-1]
    >>> row["error"], row["answered"]
    (0.1, 1.0)
    """

    confidence: float = 0.95
    highest: float = 0.2  # error rate

    title: ClassVar[str] = "Rows that can be answered with a guarantee"
    reference: ClassVar[str] = "Angelopoulos, Bates, Candès, Jordan, Lei, arXiv:2110.01052, 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        share_inside("confidence", self.confidence)
        share_inside("highest", self.highest)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        rows = []
        for name, p in models.items():
            curve = p.top_label
            positives, negatives = (group[::-1] for group in curve.groups)
            size, wrong = np.cumsum(positives + negatives), np.cumsum(negatives)
            for r in np.linspace(0, self.highest, POINTS + 1)[1:]:
                error = round(float(r), 12)
                without_guarantee = float(size[wrong <= error * size].max(initial=0.0) / curve.total)
                answered = rows_to_answer(p, curve, error, self.confidence).share
                rows.append({"model": name, "error": error, "answered": answered, "on_these_rows": without_guarantee})
        return rows

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for name in names_in(rows):
            own = [row for row in rows if row["model"] == name]
            answering = [row for row in own if row["answered"] > 0]
            if not answering:
                sentences.append(f"{name}: none up to an error rate of {percent(own[-1]['error'])}")
                continue
            at = min(answering, key=lambda row: abs(row["error"] - 0.05))
            sentences.append(
                f"{name} answers {percent(at['answered'])} at {percent(at['error'])} and none below "
                f"{percent(answering[0]['error'])}"
            )
        level = f"{100 * self.confidence:g} %"
        title = f"Share of rows that can be answered against the error rate that is guaranteed with {level} confidence"
        return f"{title}; dotted, on these very rows, without a guarantee. {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        base = chart_of(rows).encode(
            x=alt.X("error:Q", title="error rate at most", axis=alt.Axis(format="~%", tickCount=5)),
            color=colour(names_in(rows), line=True),
            tooltip=[
                alt.Tooltip("model:N"),
                alt.Tooltip("error:Q", format=".2%", title="error rate at most"),
                alt.Tooltip("answered:Q", format=".1%", title="answered"),
                alt.Tooltip("on_these_rows:Q", format=".1%", title="on these rows"),
            ],
        )
        title = "share answered"
        lines = base.mark_line(style="curve", interpolate="step-after").encode(y=unit_y("answered", title))
        observed = base.mark_line(style="noise").encode(y=unit_y("on_these_rows", title))
        return dress(alt.layer(lines, observed).properties(width=WIDTH, height=200))
