"""Ratio of observed to expected events."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.predictions import Predictions
from calibrant.measures._base import Direction, RatioMeasure


@dataclass(frozen=True)
class OERatio(RatioMeasure):
    """Events that occurred over events that the scores promised: 1 is best, below 1 they promise too many.

    Errors of opposite sign cancel, so 1 does not mean calibrated. Some fields report its inverse, E/O.

    >>> p = Predictions.binary([0.9, 0.6, 0.3, 0.2], [1, 0, 0, 0])
    >>> round(OERatio()(p), 4)  # one occurred where two were promised
    0.5
    """

    title: ClassVar[str] = "Observed/expected ratio"
    other_names: ClassVar[tuple[str, ...]] = ("oe", "eo_ratio")
    name_hint: ClassVar[str] = "observed over expected"
    meaning: ClassVar[str] = "How often it is right over how often it says so: below 1, it promises too much."
    meaning_binary: ClassVar[str] = "Positives over the positives that were promised: below 1, too many were promised."
    reference: ClassVar[str] = "Steyerberg, Clinical Prediction Models, 2019"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 92 to 96 % of trials"
    direction: ClassVar[Direction] = "one"

    def terms(self, p: Predictions) -> tuple[Array, Array]:
        return p.outcome.astype(np.float64), p.score

    @property
    def definition(self) -> str:
        return "number of correct rows over the sum of the confidence of all rows"

    def definition_for(self, p: Predictions) -> str:
        return "number of positives over the sum of P(positive)" if p.task == "binary" else self.definition
