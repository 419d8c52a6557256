"""Measures of the curve: numbers read off the sorted curve of scores and outcomes."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.curve import LONG, Curve, Outcomes
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.sampling import PARTS, Sampling
from calibrant.measures._measure import Measure


@dataclass(frozen=True)
class OfCurve(Measure):
    """A number read off a sorted curve of scores against outcomes; `curve` says which."""

    def from_curve(self, curve: Curve) -> float:
        raise TypeError(f"{type(self).__name__} does not say how to read the curve: define from_curve")

    def curve(self, p: Predictions) -> Curve:
        """The curve of scores and outcomes that the measure reads."""
        return p.curve

    def scores(self, p: Predictions) -> tuple[Array, Outcomes]:
        """Scores and outcomes of the curve, in the order of the rows."""
        return p.score, p.outcome

    @property
    def score_name(self) -> str:
        """The name of the curve's scores: "score" is the one that is judged. Streams share sums by this name."""
        return "score"

    def __call__(self, p: Predictions) -> float:
        return self.from_curve(self.curve(p))

    def resample(self, p: Predictions, counts: Ints) -> Array:
        curve = self.curve(p)
        return np.array([self.from_curve(curve.repeat(c)) for c in counts])

    def draws_if_calibrated(self, p: Predictions, rows: Sampling) -> Array:
        if p.clusters is not None:
            return super().draws_if_calibrated(p, rows)
        curve, rng = self.curve(p), np.random.default_rng(rows.seed)
        outcomes = ((rng.random(curve.n) < curve.scores) for _ in range(rows.affordable(self.resamples)))
        return np.array([self.from_curve(curve.with_outcomes(drawn.astype(np.float64))) for drawn in outcomes])

    def _values_on_parts(self, p: Predictions, rows: Sampling) -> Array:
        """Read off the curve of each part; rows of a part keep their order, so that its curve is sorted.

        Of long curves the order of all rows takes much memory.
        """
        if not self._reads_curve or p.weights is not None or p.n >= LONG:
            return super()._values_on_parts(p, rows)
        curve = self.curve(p)
        part_of = rows.part_of[curve.order]
        grouped = np.argsort(part_of, kind="stable")
        ends = np.cumsum(np.bincount(part_of, minlength=PARTS))[:-1]
        rows.step(PARTS)
        return np.array([self.from_curve(curve.samples(i)) for i in np.split(grouped, ends)])

    @property
    def _reads_curve(self) -> bool:
        """Whether the value is read off the curve; a subclass may make something else of it."""
        return type(self).__call__ is OfCurve.__call__


@dataclass(frozen=True)
class CurveMeasure(OfCurve):
    """A number read off the sorted curve of scores and outcomes: confidence and correctness, or P(positive) and truth.

    `scope=top` reads confidence and correctness of binary predictions too.
    """

    scope: Literal["event", "top"] = field(default="event", kw_only=True)

    def curve(self, p: Predictions) -> Curve:
        return p.top_label if self.scope == "top" else p.curve

    def scores(self, p: Predictions) -> tuple[Array, Outcomes]:
        return (p.confidence, p.correct) if self.scope == "top" else (p.score, p.outcome)

    @property
    def score_name(self) -> str:
        return "top label" if self.scope == "top" else "score"

    def definition_for(self, p: Predictions) -> str:
        if self.scope == "top" or p.task != "binary":
            return super().definition_for(p) if p.task != "binary" else self.definition
        definition = super().definition_for(p)
        return definition if definition != self.definition else f"{definition}; by P(positive) against being positive"


@dataclass(frozen=True)
class RankingMeasure(CurveMeasure):
    """A number read off the order of the rows alone: logits tell apart what scores next to 0 and 1 cannot."""

    def curve(self, p: Predictions) -> Curve:
        return p.top_ranking if self.scope == "top" else p.ranking
