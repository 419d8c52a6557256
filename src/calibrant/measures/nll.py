"""Negative log-likelihood, also called log loss or cross-entropy."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.config.bounds import at_least
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate, Widest
from calibrant.core.statistics.mean_interval import skewed_noise
from calibrant.core.statistics.sampling import Sampling
from calibrant.core.text.vocabulary import vocabulary_of
from calibrant.measures._base import RowMeasure


@dataclass(frozen=True)
class NLL(RowMeasure):
    """Mean of -ln p(true class): a proper score, which falls with better calibration or better refinement.

    One confident mistake can dominate it. Exact from logits; probabilities of 0 occur in files that were rounded, so
    they are floored at 1e-12. `floor` sets another floor, for logits too.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(NLL()(p), 4)  # -(ln 0.9 + ln 0.4) / 2
    0.5108
    """

    floor: float | None = None

    title: ClassVar[str] = "Negative log-likelihood"
    other_names: ClassVar[tuple[str, ...]] = ("log_loss", "neg_log_loss", "log_score", "cross_entropy", "ce")
    meaning: ClassVar[str] = "How surprised it is by the truth; rewards being right and being calibrated at once."
    reference: ClassVar[str] = "Good, 1952"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("floor", self.floor or 0, 0)

    def rows(self, p: Predictions) -> Array:
        rows = np.negative(p.true_log_prob)
        if self.floor:
            np.minimum(rows, -np.log(self.floor), out=rows)
        return np.maximum(rows, 0.0, out=rows)

    def mean_estimate(self, p: Predictions, numbers: Array, value: float, rows: Sampling) -> Estimate:
        """Widened, where resamples tell the noise, for the long tail of rare confident mistakes."""
        plain = super().mean_estimate(p, numbers, value, rows)
        if rows.subtracted or rows.in_parts or plain.noise is None:
            return plain
        skewed = skewed_noise(p, numbers)
        return self.with_noise(value, Widest(first=plain.noise, second=lambda: skewed))

    @property
    def definition(self) -> str:
        if self.floor is None:
            return "mean of -ln p(true class), natural logarithm, exact from logits, probabilities floored at 1e-12"
        return f"mean of -ln p(true class), natural logarithm, p floored at {self.floor:g}"

    def definition_for(self, p: Predictions) -> str:
        event = vocabulary_of(p.task).event
        return self.definition if event is None else f"{self.definition}; of the event of {event}"
