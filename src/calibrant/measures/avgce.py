"""Average calibration error: bins count alike, whatever their size."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Bins
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import l1_noise, per_share
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._base import BinnedMeasure


@dataclass(frozen=True)
class AvgCE(BinnedMeasure):
    """Gap between confidence and accuracy, averaged over non-empty bins with equal weight.

    A bin of one sample weighs as much as a bin of thousands. netcal calls this ACE.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], labels=[0, 1, 1])
    >>> round(AvgCE(bins=4)(p), 3)  # gaps 0.65 (two samples) and 0.1 (one)
    0.375
    """

    title: ClassVar[str] = "Average calibration error"
    reference: ClassVar[str] = "Neumann, Zisserman, Vedaldi, NeurIPS MLITS 2018"

    def from_bins(self, bins: Bins) -> float:
        return float(np.abs(bins.gap).sum() / max(bins.filled.sum(), 1))

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        return l1_noise(sums.scale(per_share(bins) / max(bins.filled.sum(), 1)))

    @property
    def definition(self) -> str:
        return f"top-label gap, plain mean over non-empty bins, {self.bins_in_words}"
