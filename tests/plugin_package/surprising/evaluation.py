"""Two measures, a calibrator, a figure and a rescorer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant import Map, Predictions
from calibrant.calibrators import Calibrator, Linear
from calibrant.figures import PredictionFigure
from calibrant.measures import CurveMeasure, RowMeasure, Streams, Unit
from calibrant.rescorers import Rescorer


@dataclass(frozen=True)
class Surprise(RowMeasure):
    """How often a sure prediction was wrong."""

    above: float = 0.9

    title: ClassVar[str] = "Surprise"
    reference: ClassVar[str] = "-"
    unit: ClassVar[Unit] = "percent"
    meaning: ClassVar[str] = "How often it is sure and wrong."

    def rows(self, p: Predictions) -> Any:
        return ((p.score > self.above) & ~p.outcome).astype(float)


@dataclass(frozen=True)
class UpperHalf(CurveMeasure):
    """A measure of ranking: the mean outcome of the upper half of the scores."""

    title: ClassVar[str] = "Outcomes of the upper half"
    reference: ClassVar[str] = "-"
    streams: ClassVar[Streams] = "ranking"

    def from_curve(self, curve: Any) -> float:
        weights = np.asarray(getattr(curve, "weights", np.ones(curve.n)), dtype=float)
        upper = np.cumsum(weights) > weights.sum() / 2
        return float(np.average(np.asarray(curve.outcomes, dtype=float)[upper], weights=weights[upper]))


@dataclass(frozen=True)
class Halved(Calibrator):
    """Half of every logit."""

    title: ClassVar[str] = "Halved logits"
    words: ClassVar[str] = "halving the logits"
    reference: ClassVar[str] = "-"
    keeps_argmax: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        return self.build_map(p, Linear(np.array(0.5), np.array(0.0)), factor=0.5)


@dataclass(frozen=True)
class Accuracies(PredictionFigure):
    """The accuracy of every model as a bar."""

    title: ClassVar[str] = "Accuracies"

    def data(self, models: Mapping[str, Predictions]) -> list[dict[str, Any]]:
        return [{"model": name, "accuracy": float(p.correct.mean())} for name, p in models.items()]

    def words(self, rows: list[dict[str, Any]]) -> str:
        return ", ".join(f"{row['model']} is right in {100 * row['accuracy']:.0f} %" for row in rows)

    def chart(self, rows: list[dict[str, Any]]) -> Any:
        import altair as alt

        return alt.Chart(alt.Data(values=rows)).mark_bar().encode(x="model:N", y="accuracy:Q")


@dataclass(frozen=True)
class Typical(Rescorer):
    """The accuracy of held-out rows as the confidence of every row."""

    title: ClassVar[str] = "Typical"
    reference: ClassVar[str] = "-"

    def fit(self, p: Predictions) -> "TypicalConfidence":
        return TypicalConfidence(float(p.correct.mean()))


@dataclass(frozen=True)
class TypicalConfidence:
    accuracy: float

    def predict(self, p: Predictions) -> Predictions:
        return p.with_confidence(np.full(p.n, self.accuracy))
