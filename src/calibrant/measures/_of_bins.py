"""Measures of bins: every choice about bins, and numbers read off the bins of the curve."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.binning import Binning, Closed, Scheme, check_bins
from calibrant.core.curves.class_curves import ClassCurves
from calibrant.core.curves.curve import BLOCK, LONG, Bins, Curve, bin_scores
from calibrant.core.curves.weighted import WeightedCurves
from calibrant.core.parallel import pieces
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws, Estimate
from calibrant.core.statistics.sampling import Entries, NoisyValues, Sampling
from calibrant.measures._dialects import MASS_RULES, MassRule
from calibrant.measures._measure import Measure, Streams, Unit
from calibrant.measures._of_curve import CurveMeasure


@dataclass(frozen=True)
class BinOptions(Measure):
    """Base class of measures with bins: number, scheme, closed side and rule of equal mass are options."""

    bins: int = 15
    scheme: Scheme = "width"
    closed: Closed = "right"
    mass_rule: MassRule = "sort"

    of_calibration: ClassVar[bool] = True
    unit: ClassVar[Unit] = "percent"
    streams: ClassVar[Streams] = "bins"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bins(self.bins)

    def from_bins(self, bins: Bins) -> float:
        raise TypeError(f"{type(self).__name__} does not say how to read the bins: define from_bins")

    def noise_of(self, bins: Bins, sums: NoisyValues) -> Draws | None:
        """Noise of the value from that of each bin's residuals (score minus outcome, over n); None if unknown."""
        return None

    @property
    def binning(self) -> Binning:
        rule = MASS_RULES[self.mass_rule] if self.scheme == "mass" else None
        return Binning(self.bins, self.scheme, self.closed, rule)

    def make_bins(self, curve: Curve | ClassCurves | WeightedCurves) -> Bins:
        return curve.bins(self.binning)

    @property
    def streamed_from(self) -> Streams:
        """Sums for streams: only bins whose edges are known before the rows can be streamed."""
        return self.streams if self.scheme == "width" else "no"

    @property
    def bins_in_words(self) -> str:
        """The bins in words, for instance: 15 equal-width right-closed bins."""
        if self.scheme == "width":
            return f"{self.bins} equal-width {self.closed}-closed bins"
        rule = {
            "sort": "by position in the sorted list",
            "midpoint": "edges midway between chunks, ties together",
            "interp": f"interpolated edges, {'smallest' if self.closed == 'right' else 'largest'} value dropped",
            "stride": "edges at every floor(n/bins)-th value",
        }[self.mass_rule]
        side = ", left-closed" if self.closed == "left" and self.mass_rule != "sort" else ""
        return f"{self.bins} equal-mass bins ({rule}{side})"


@dataclass(frozen=True)
class BinnedMeasure(CurveMeasure, BinOptions):
    """A number read off the bins of the curve."""

    def __call__(self, p: Predictions) -> float:
        return self.from_bins(self.score_bins(p)) if self.streamed_from == "bins" else super().__call__(p)

    def score_bins(self, p: Predictions) -> Bins:
        """The bins of the rows; where the edges are known before the rows, without sorting them."""
        bins = self._bins_without_sort(p) if self.scheme == "width" and p.weights is None else None
        return self.make_bins(self.curve(p)) if bins is None else bins

    def from_curve(self, curve: Curve) -> float:
        return self.from_bins(self.make_bins(curve))

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        bins = self.score_bins(p)
        value = self.from_bins(bins) if self._reads_curve else self(p)
        noise = self.noise_of(bins, self._residuals(p, bins, rows))
        return self.resampled_estimate(p, value, rows) if noise is None else self.with_noise(value, noise)

    def _residuals(self, p: Predictions, bins: Bins, rows: Sampling) -> NoisyValues:
        """The residuals in each bin with their noise."""
        curve = self.curve(p)
        starts = curve.bin_starts(self.binning) if rows.joint and curve.n >= LONG and p.weights is None else None
        if starts is None:
            sums = rows.gather(lambda: curve.order, curve.bin_of(self.binning), curve.residuals, self.bins)
        else:  # without the order of the rows, which takes much time and memory where they are many
            sums = rows.gather_jointly((self._entries(p, part, starts) for part in pieces(p.n, BLOCK)), self.bins)
        return NoisyValues((bins.score_sum - bins.outcome_sum) / bins.n, sums.noise)

    def resample(self, p: Predictions, counts: Ints) -> Array:
        if self.scheme != "width":
            return super().resample(p, counts)
        # Fixed bins: a row stays in its bin, so a resample is three weighted counts.
        curve = self.curve(p)
        bin_of = curve.bin_of(self.binning)

        def sums(weights: Array) -> Array:
            return np.bincount(bin_of, weights, minlength=self.bins).astype(np.float64)

        def resample(c: Ints) -> Bins:
            w = c[curve.order].astype(np.float64) if p.weights is None else c[curve.order] * curve.weights
            return Bins(sums(w), sums(w * curve.scores), sums(w * curve.outcomes), float(w.sum()), curve.weight_unit)

        return np.array([self.from_bins(resample(c)) for c in counts])

    def draws_if_calibrated(self, p: Predictions, rows: Sampling) -> Array:
        if self.streamed_from != "bins" or p.weights is not None or p.clusters is not None:
            return super().draws_if_calibrated(p, rows)
        curve, rng = self.curve(p), np.random.default_rng(rows.seed)
        bins = self.make_bins(curve)  # rows stay in their bins, where their outcomes are counted
        ends, values = np.cumsum(bins.count).astype(np.int64).tolist(), []
        for _ in range(rows.affordable(self.resamples)):
            occurred = rng.random(curve.n) < curve.scores
            positives = [float(np.count_nonzero(occurred[start:end])) for start, end in pairwise([0, *ends])]
            values.append(self.from_bins(replace(bins, outcome_sum=np.array(positives))))
        return np.array(values)

    @property
    def _reads_curve(self) -> bool:
        return type(self).__call__ is BinnedMeasure.__call__

    def _bins_without_sort(self, p: Predictions) -> Bins | None:
        """Bins of equal width, of very many rows part by part; None where the compiled passes are missing."""
        sums: Bins | None = None
        for part in [p] if p.n < LONG else (p.slice_rows(rows) for rows in pieces(p.n, BLOCK)):
            bins = bin_scores(*self.scores(part), self.bins, self.closed)
            if bins is None:
                return None
            sums = bins if sums is None else sums + bins
        return sums

    def _entries(self, p: Predictions, rows: slice, starts: Array) -> Entries:
        """Row, bin and residual of some rows, in their own order."""
        scores, outcomes = self.scores(p.slice_rows(rows))
        bin_of = np.searchsorted(starts, scores, side="right") - 1
        bin_of[bin_of == self.bins] = -1
        return np.arange(rows.start, rows.stop), bin_of, scores - outcomes
