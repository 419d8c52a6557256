"""Adaptive calibration error of Nixon et al."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.binning import Scheme
from calibrant.core.curves.curve import Bins
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import l1_noise, per_share
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._base import ClassMeasure


@dataclass(frozen=True)
class ACENixon(ClassMeasure):
    """Gap in equal-mass ranges of every class's probability, averaged over classes and ranges alike.

    Other libraries call other things ACE (netcal: `avgce`; many papers: `ece:scheme=mass`).

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(ACENixon(bins=2)(p), 3)  # gaps 0.6, 0.1 for class 0 and 0.1, 0.6 for class 1
    0.35
    """

    scheme: Scheme = "mass"

    title: ClassVar[str] = "Adaptive calibration error (Nixon)"
    other_names: ClassVar[tuple[str, ...]] = ("ace",)
    name_hint: ClassVar[str] = "over classes as well as bins"
    reference: ClassVar[str] = "Nixon et al., CVPR workshops 2019"

    def __call__(self, p: Predictions) -> float:
        self.check_shape(p)
        return self.of_classes(self.class_bins(p))

    def of_classes(self, bins: Bins) -> float:
        return float(np.abs(bins.gap).mean())

    def cell_scale(self, bins: Bins) -> Array:
        return np.asarray(per_share(bins) / bins.count.size)

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        return l1_noise(sums.scale(self.cell_scale(bins)))

    @property
    def definition(self) -> str:
        return f"class-wise gap, {self.bins_in_words} per class, plain mean over classes and bins"
