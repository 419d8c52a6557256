"""Expected calibration error, with bins of equal width or equal mass."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curve import Bins, Curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures._base import BinnedMeasure, CurveMeasure, at_least
from calibrant.measures._dialects import DIALECTS, Dialect


@dataclass(frozen=True)
class ECE(BinnedMeasure):
    """Gap between confidence and accuracy, averaged over bins by their size.

    Biased upwards when bins hold few samples: compare only at equal n and bins.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(ECE(bins=2)(p), 3)  # both in the upper bin: |0.75 - 0.5|
    0.25
    """

    norm: float = 1.0
    dialect: Dialect | None = None

    title: ClassVar[str] = "Expected calibration error"
    reference: ClassVar[str] = "Naeini, Cooper, Hauskrecht, AAAI 2015"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("norm", self.norm, 1)
        if self.dialect is not None and replace(self, dialect=None) != ECE(bins=self.bins):
            raise InputError(
                f"ece:dialect={self.dialect}",
                expected="no option but bins: a dialect is what that library does",
                got="another option too",
                fix="drop scheme, closed, em and norm, or the dialect",
            )

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        if self.dialect is not None:
            return CurveMeasure.resampled(self, p, counts)
        return super().resampled(p, counts)

    def on(self, curve: Curve) -> float:
        if self.dialect is not None:
            return DIALECTS[self.dialect].ece(curve, self.bins)
        return super().on(curve)

    def of(self, bins: Bins) -> float:
        if self.norm == 1:
            return float(np.abs(bins.score_sum - bins.hit_sum).sum() / bins.n)
        return float((bins.share @ np.abs(bins.gap) ** self.norm) ** (1 / self.norm))

    @property
    def definition(self) -> str:
        if self.dialect is not None:
            return f"top-label ECE as {self.dialect} computes it, {self.bins} bins: {DIALECTS[self.dialect].words}"
        return f"top-label ECE, {self.bins_in_words}, L{self.norm:g}"
