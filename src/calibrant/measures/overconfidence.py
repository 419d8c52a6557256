"""Overconfidence error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Bins
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import l1_noise
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._base import BinnedMeasure


@dataclass(frozen=True)
class Overconfidence(BinnedMeasure):
    """Only gaps where confidence exceeds accuracy, weighted by the confidence.

    Zero does not mean calibrated: an underconfident model scores 0 too.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(Overconfidence(bins=2)(p), 4)  # 0.75 * (0.75 - 0.5)
    0.1875
    """

    title: ClassVar[str] = "Overconfidence error"
    reference: ClassVar[str] = "Thulasidasan et al., NeurIPS 2019"

    def from_bins(self, bins: Bins) -> float:
        return float(bins.share @ (bins.confidence * np.maximum(bins.gap, 0.0)))

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        return l1_noise(sums.scale(bins.confidence), above_only=True)

    @property
    def definition(self) -> str:
        return f"top-label confidence times its excess over accuracy, {self.bins_in_words}"
