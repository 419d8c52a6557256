"""Reliability: the calibration part of the top-label Brier score."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curves.curve import Bins
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import l2_noise, per_root_share
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._base import BinnedMeasure, Unit


@dataclass(frozen=True)
class Reliability(BinnedMeasure):
    """Squared gap between confidence and accuracy, averaged over bins by their size.

    The exact decomposition also needs the spread inside bins: see `calibrant decompose`.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(Reliability(bins=2)(p), 4)  # (0.75 - 0.5) ** 2
    0.0625
    """

    title: ClassVar[str] = "Reliability"
    unit: ClassVar[Unit] = "number"
    reference: ClassVar[str] = "Murphy, 1973; Stephenson et al., 2008"

    def from_bins(self, bins: Bins) -> float:
        return float(bins.share @ bins.gap**2)

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        return l2_noise(sums.scale(per_root_share(bins))).square()

    @property
    def definition(self) -> str:
        return f"squared top-label gap (calibration part of the Brier score), {self.bins_in_words}"
