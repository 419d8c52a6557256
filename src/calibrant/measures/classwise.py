"""Class-wise calibration error, also called static or marginal calibration error."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.config.bounds import at_least
from calibrant.core.curves.binning import check_bins, equal_width_edges
from calibrant.core.curves.curve import Bins
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.residual_noise import l1_noise, l2_noise, per_root_share
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.measures._base import ClassMeasure, Streams


@dataclass(frozen=True)
class Classwise(ClassMeasure):
    """The calibration error of every class's own probability, averaged over all k classes alike.

    Most probabilities are near 0, so many classes make it small; with equal mass it is insensitive.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(Classwise(bins=2)(p), 3)  # class 0: |0.75 - 0.5|; class 1: |0.25 - 0.5|
    0.25
    """

    norm: float = 1.0

    streams: ClassVar[Streams] = "bins"
    title: ClassVar[str] = "Class-wise calibration error"
    other_names: ClassVar[tuple[str, ...]] = (
        "cwece",
        "cwce",
        "classwise_ece",
        "static_calibration_error",
        "sce",
        "marginal_calibration_error",
    )
    meaning: ClassVar[str] = "The same for the probability of every class, not only of the predicted one."
    reference: ClassVar[str] = "Nixon et al., CVPR workshops 2019; Kull et al., NeurIPS 2019"
    covers: ClassVar[str] = "wider than it need be: a nominal 95 % held the truth in 96 to 100 % of trials"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("norm", self.norm, 1)

    def __call__(self, p: Predictions) -> float:
        self.check_shape(p)
        check_bins(self.bins, p.k)
        if self.scheme == "width" and (bins := p.width_bins(self.bins, self.closed)) is not None:
            return self.of_classes(bins)
        if self.scheme == "width" and self.norm == 1:
            return float(self.resample(p, np.ones((1, p.n), dtype=np.int64))[0])  # needs no sort
        return self.on_curves(p)

    def on_curves(self, p: Predictions) -> float:
        """The value from sorted class curves, which many measures can share."""
        return self._root(self.per_class(p))

    def per_class(self, p: Predictions) -> Array:
        """The error of each class to the power of the norm, (k,)."""
        return np.concatenate([self._powers(self.make_bins(curves)) for curves in p.class_curves()])

    def of_classes(self, bins: Bins) -> float:
        return self._root(self._powers(bins))

    def _powers(self, bins: Bins) -> Array:
        if self.norm == 1:
            return np.asarray(np.abs(bins.score_sum - bins.outcome_sum).sum(axis=1) / bins.n)
        return np.asarray((bins.share * np.abs(bins.gap) ** self.norm).sum(axis=1))

    def _root(self, powers: Array) -> float:
        return float(powers.mean() ** (1 / self.norm))

    def resample(self, p: Predictions, counts: Ints) -> Array:
        if self.scheme == "width" and self.norm == 1:
            return _resample_width(p, counts, equal_width_edges(self.bins)[1:-1], self.closed == "right")
        return super().resample(p, counts)

    def cell_scale(self, bins: Bins) -> Array | None:
        return np.asarray(1 / len(bins.count)) if self.norm == 1 else None

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        if (scale := self.cell_scale(bins)) is not None:
            return l1_noise(sums.scale(scale))
        if self.norm == 2:
            return l2_noise(sums.scale(per_root_share(bins) / np.sqrt(len(bins.count))))
        return None

    @property
    def definition(self) -> str:
        return f"class-wise calibration error, {self.bins_in_words} per class, mean over all classes, L{self.norm:g}"


def _resample_width(p: Predictions, counts: Ints, inner: Array, right_closed: bool) -> Array:
    """The measure on resamples with fixed bins: entries above the first bin are summed, the rest is a product."""
    bins = len(inner) + 1
    residual = np.zeros((len(counts), p.k))  # sum of p - y per class over all bins
    where: list[tuple[Ints, Ints, Array]] = []  # row, flat bin, residual of every entry above the first bin
    weights = counts.astype(np.float64) if p.weights is None else counts * p.weights
    for rows, probs in p.prob_rows():
        residuals = probs.copy()
        residuals[np.arange(len(probs)), p.labels[rows]] -= 1.0
        residual += weights[:, rows] @ residuals
        if bins > 1:
            i, c = np.nonzero(probs > inner[0] if right_closed else probs >= inner[0])
            bin_of = inner.searchsorted(probs[i, c], side="left" if right_closed else "right")
            where.append((i + rows.start, c * bins + bin_of, residuals[i, c]))
    if not where:
        return np.asarray(np.abs(residual).sum(axis=1) / (weights.sum(axis=1) * p.k))
    row, flat, value = (np.concatenate(column) for column in zip(*where, strict=True))
    totals = np.empty(len(counts))
    for r, w in enumerate(weights):
        upper = np.bincount(flat, w[row] * value, minlength=p.k * bins).astype(np.float64)  # integers when empty
        upper = upper.reshape(p.k, bins)
        upper[:, 0] = residual[r] - upper.sum(axis=1)
        totals[r] = np.abs(upper).sum()
    return np.asarray(totals / (weights.sum(axis=1) * p.k))
