"""Expected calibration error, with bins of equal width or equal mass."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.config.bounds import at_least
from calibrant.core.curves.curve import Bins, Curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws, Estimate
from calibrant.core.statistics.residual_noise import l1_noise, l2_noise, per_root_share
from calibrant.core.statistics.sampling import NoisyValues, Sampling
from calibrant.measures._base import BinnedMeasure, CurveMeasure, Streams
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
    other_names: ClassVar[tuple[str, ...]] = (
        "calibration_error",
        "l1_calibration_error",
        "adaptive_ece",
        "ada_ece",
        "ace",
    )
    name_hint: ClassVar[str] = "with the option scheme=mass for equal-mass bins"
    blind_to: ClassVar[str] = "errors that cancel within a bin"
    meaning: ClassVar[str] = (
        "How far what it says is from how often it is right, on average over its levels of confidence."
    )
    meaning_binary: ClassVar[str] = "How far P(positive) is from the share of positives, on average over its levels."
    reference: ClassVar[str] = "Naeini, Cooper, Hauskrecht, AAAI 2015"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 93 to 99 % of trials, with 100 bins in 92 to 100 %"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("norm", self.norm, 1)
        if self.dialect is not None and replace(self, dialect=None) != ECE(bins=self.bins):
            raise InputError(
                f"ece:dialect={self.dialect}",
                expected="no option but bins: a dialect is what that library does",
                got="another option too",
                fix="drop the options other than bins, or the dialect",
            )

    @property
    def streamed_from(self) -> Streams:
        return super().streamed_from if self.dialect is None else "no"

    def explain(self, task: str) -> str:
        return "The same with bins that hold equally many rows." if self.scheme == "mass" else super().explain(task)

    def resample(self, p: Predictions, counts: Ints) -> Array:
        if self.dialect is not None:
            return CurveMeasure.resample(self, p, counts)
        return super().resample(p, counts)

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        if self.dialect is None:
            return super().estimate(p, rows)
        rule, curve = DIALECTS[self.dialect], self.curve(p)
        bin_of = rule.bin_of(curve.scores.astype(rule.precision), self.bins)
        gaps = rows.gather(lambda: curve.order, bin_of, curve.scores - curve.outcomes, self.bins + 1)
        return self.with_noise(self(p), l1_noise(gaps))

    def from_curve(self, curve: Curve) -> float:
        if self.dialect is not None:
            return DIALECTS[self.dialect].ece(curve, self.bins)
        return super().from_curve(curve)

    def from_bins(self, bins: Bins) -> float:
        if self.norm == 1:
            return bins.ece
        return float((bins.share @ np.abs(bins.gap) ** self.norm) ** (1 / self.norm))

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        if self.norm == 1:
            return l1_noise(sums)
        if self.norm == 2:
            return l2_noise(sums.scale(per_root_share(bins)))
        return None

    @property
    def definition(self) -> str:
        if self.dialect is not None:
            return f"top-label ECE as {self.dialect} computes it, {self.bins} bins: {DIALECTS[self.dialect].words}"
        return f"top-label ECE, {self.bins_in_words}, L{self.norm:g}"
