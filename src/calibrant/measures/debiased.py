"""Debiased squared calibration error (Kumar)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.binning import Scheme
from calibrant.core.curves.curve import Bins
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import l2_noise, per_root_share
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._base import BinnedMeasure


@dataclass(frozen=True)
class DebiasedError(BinnedMeasure):
    """RMS calibration error minus the part that sampling noise explains, before the root.

    Clipped at 0, so a well-calibrated model often shows exactly 0. Bins of one sample count nothing.

    >>> p = Predictions.from_probs([[0.9, 0.1]] * 3 + [[0.8, 0.2]], labels=[0, 0, 1, 1])
    >>> round(DebiasedError(bins=1)(p), 4)  # gap 0.375, accuracy 0.5: sqrt(0.375 ** 2 - 0.25 / 3)
    0.2394
    """

    scheme: Scheme = "mass"

    title: ClassVar[str] = "Debiased calibration error"
    reference: ClassVar[str] = "Kumar, Liang, Ma, NeurIPS 2019"

    def from_bins(self, bins: Bins) -> float:
        rows = bins.count * bins.weight_unit
        enough = rows >= 2
        a = bins.accuracy[enough]
        squared = bins.gap[enough] ** 2 - a * (1 - a) / (rows[enough] - 1)
        return float(np.sqrt(np.maximum(bins.share[enough] @ squared, 0.0)))

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        return l2_noise(sums.scale(per_root_share(bins)))

    @property
    def definition(self) -> str:
        return f"top-label calibration error, {self.bins_in_words}, L2, noise subtracted, root of max(., 0)"
