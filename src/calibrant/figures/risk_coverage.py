"""Risk-coverage curve: how many errors remain if only the most confident predictions are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from calibrant.core.config.bounds import share_inside
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import join_clauses, percent, whole_percent
from calibrant.core.text.theme import WIDTH, dress
from calibrant.figures._base import PredictionFigure, Row
from calibrant.figures._layers import chart_of, colour, names_in, unit_x
from calibrant.figures._thin import thin

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class RiskCoverage(PredictionFigure):
    """Error rate among the predictions that are kept, from the most confident on, against the share that is kept.

    Its left end rests on few rows and jumps about. Calibration maps that keep the ranking do not change the curve.
    `coverage` is the share the words speak of. Of binary predictions the likelier class is the prediction.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> [(row["coverage"], row["risk"]) for row in RiskCoverage().data({"demo": p})]
    [(0.5, 0.0), (1.0, 0.5)]
    """

    coverage: float = 0.8

    title: ClassVar[str] = "Risk-coverage curve"
    reference: ClassVar[str] = "El-Yaniv, Wiener, JMLR 2010; Geifman, Uziel, El-Yaniv, ICLR 2019"

    def __post_init__(self) -> None:
        super().__post_init__()
        share_inside("coverage", self.coverage)

    def data(self, models: Mapping[str, Predictions]) -> list[Row]:
        return [row for name, p in models.items() for row in _curve(name, p.top_ranking)]

    def words(self, rows: list[Row]) -> str:
        sentences = []
        for name in names_in(rows):
            own = [row for row in rows if row["model"] == name]
            at = min(own, key=lambda row: abs(row["coverage"] - self.coverage))
            sentences.append(
                f"{name} errs in {percent(own[-1]['risk'])} of all rows and in {percent(at['risk'])} of the "
                f"{whole_percent(at['coverage'])} "
                f"it is most sure of (AURC {own[0]['aurc']:.4f})"
            )
        title = (
            "Error rate among the most confident predictions, against their share; dotted, the best possible ranking"
        )
        return f"{title}. {join_clauses(sentences)}."

    def chart(self, rows: list[Row]) -> "alt.TopLevelMixin":
        import altair as alt

        names = names_in(rows)
        axis = alt.Axis(format="%", tickCount=5)
        tooltip = [
            alt.Tooltip("model:N"),
            alt.Tooltip("coverage:Q", format=".1%"),
            alt.Tooltip("risk:Q", format=".2%"),
            alt.Tooltip("best:Q", format=".2%", title="best possible"),
            alt.Tooltip("threshold:Q", format=".2%", title="confidence from"),
        ]
        base = chart_of(rows).encode(
            x=unit_x("coverage", "coverage (share of rows kept)"), color=colour(names, line=True)
        )
        title = "risk (error rate)"
        lines = base.mark_line(style="curve").encode(y=alt.Y("risk:Q", title=title, axis=axis), tooltip=tooltip)
        best = base.mark_line(style="noise").encode(y=alt.Y("best:Q", title=title, axis=axis), tooltip=tooltip)
        return dress(alt.layer(lines, best, width=WIDTH, height=170))


def _curve(name: str, curve: Curve) -> list[Row]:
    positives, negatives = (group[::-1] for group in curve.groups)  # from the most confident down
    size, wrong = np.cumsum(positives + negatives), np.cumsum(negatives)
    risk, coverage = wrong / size, size / curve.total
    aurc = float((positives + negatives) @ risk / curve.total)
    accuracy = 1 - risk[-1]
    best = np.maximum(coverage - accuracy, 0) / coverage  # every error ranked behind every correct row
    threshold = curve.scores[curve.group_ends - 1][::-1]
    return [
        {
            "model": name,
            "coverage": float(coverage[i]),
            "risk": float(risk[i]),
            "best": float(best[i]),
            "threshold": float(threshold[i]),
            "aurc": aurc,
        }
        for i in thin(coverage)
    ]
