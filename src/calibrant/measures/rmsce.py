"""Root-mean-square calibration error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Bins
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import l2_noise, per_root_share
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._base import BinnedMeasure


@dataclass(frozen=True)
class RMSCE(BinnedMeasure):
    """Root of the squared gap between confidence and accuracy, averaged over bins by their size.

    Biased upwards like the ECE; `debiased` subtracts the part that sampling noise explains.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(RMSCE(bins=4)(p), 4)  # sqrt((0.6 ** 2 + 0.1 ** 2) / 2)
    0.4301
    """

    title: ClassVar[str] = "RMS calibration error"
    other_names: ClassVar[tuple[str, ...]] = ("rms", "l2_calibration_error", "l2_ece")
    reference: ClassVar[str] = "Hendrycks, Mazeika, Dietterich, ICLR 2019"

    def from_bins(self, bins: Bins) -> float:
        return float(np.sqrt(bins.share @ bins.gap**2))

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        return l2_noise(sums.scale(per_root_share(bins)))

    @property
    def definition(self) -> str:
        return f"top-label calibration error, {self.bins_in_words}, L2"
