"""Maximum calibration error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.config.bounds import at_least
from calibrant.core.curves.curve import Bins
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import max_noise, per_share
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._base import BinnedMeasure


@dataclass(frozen=True)
class MCE(BinnedMeasure):
    """The largest gap between confidence and accuracy of any bin.

    Very noisy: one sample alone in a bin decides it. Raise `min_count` to look at larger bins only.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(MCE(bins=4)(p), 3)  # bins (0.5, 0.75] and (0.75, 1]: gaps 0.6 and 0.1
    0.6
    """

    min_count: int = 1

    title: ClassVar[str] = "Maximum calibration error"
    other_names: ClassVar[tuple[str, ...]] = ("max_calibration_error",)
    meaning: ClassVar[str] = "The same in the worst bin; a bin with few rows can decide it."
    reference: ClassVar[str] = "Naeini, Cooper, Hauskrecht, AAAI 2015"
    covers: ClassVar[str] = "wider than it need be: a nominal 95 % held the truth in 93 to 100 % of trials"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("min_count", self.min_count, 1)

    def from_bins(self, bins: Bins) -> float:
        large = (bins.count * bins.weight_unit >= self.min_count) | (self.min_count == 1) & bins.filled
        return float(np.abs(bins.gap[large]).max(initial=0.0))

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        large = (bins.count * bins.weight_unit >= self.min_count) | (self.min_count == 1) & bins.filled
        return max_noise(sums.scale(np.where(large, per_share(bins), 0.0)))

    @property
    def definition(self) -> str:
        filled = "non-empty bins" if self.min_count == 1 else f"bins of at least {self.min_count} samples"
        return f"largest top-label gap over {filled}, {self.bins_in_words}"
