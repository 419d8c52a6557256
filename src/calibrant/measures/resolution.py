"""Resolution: how well the bins tell right predictions from wrong ones."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Bins
from calibrant.measures._base import BinnedMeasure, Direction, Unit


@dataclass(frozen=True)
class Resolution(BinnedMeasure):
    """Squared distance of bin accuracies from the overall accuracy, averaged over bins by their size.

    Grows with the number of bins and falls with the accuracy of a good model: compare at equal accuracy and bins.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> Resolution(bins=4)(p)  # accuracies 0 and 1 around 0.5
    0.25
    """

    title: ClassVar[str] = "Resolution"
    unit: ClassVar[Unit] = "number"
    reference: ClassVar[str] = "Murphy, 1973"
    direction: ClassVar[Direction] = "up"
    of_calibration: ClassVar[bool] = False
    bounds: ClassVar[tuple[float, float]] = (0.0, 0.25)

    def from_bins(self, bins: Bins) -> float:
        rate = bins.outcome_sum.sum() / max(bins.count.sum(), 1.0)
        return float(np.minimum(bins.share @ (bins.accuracy - rate) ** 2, 0.25))

    @property
    def definition(self) -> str:
        return f"squared distance of bin accuracy from overall accuracy, {self.bins_in_words}"
