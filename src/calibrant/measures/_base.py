"""What a measure promises, and the three shapes measures come in: of rows, of the curve, of class curves."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.catalogue import check_options
from calibrant.core.curve import Bins, ClassCurves, Closed, Curve, Mass, Scheme
from calibrant.core.errors import InputError
from calibrant.core.intervals import one_sided
from calibrant.core.predictions import Predictions

SUSPECT_BIAS = 0.1  # of the value; a calibrated model shows about 0.4

Direction = Literal["down", "up", "zero", "none"]


@dataclass(frozen=True)
class Measure:
    """A number about predictions: pure, blind to the order of rows and to a constant added to a row of logits."""

    title: ClassVar[str]
    reference: ClassVar[str]
    direction: ClassVar[Direction] = "down"  # which way is better
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    resamples: ClassVar[int] = 1000  # how many the interval takes unless told otherwise
    of_calibration: ClassVar[bool] = False  # zero for a perfectly calibrated model of infinitely many rows

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, p: Predictions) -> float:
        raise TypeError(f"{type(self).__name__} does not say how it is computed: define __call__")

    @property
    def definition(self) -> str:
        """What exactly the number is, in words, with the options that matter."""
        return self.title

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        """The measure on resamples: row i of the data occurs counts[r, i] times in resample r."""
        rows = np.arange(p.n)
        return np.array([self(p.take(np.repeat(rows, c))) for c in counts])

    def simulated(self, p: Predictions, rng: np.random.Generator) -> float:
        """The measure if the probabilities were exactly right: labels drawn from them."""
        return self(Predictions(p.values, _draw_labels(p, rng), p.kind))

    def under_calibration(self, p: Predictions, resamples: int, seed: int) -> Array:
        """The measure on labels drawn from the probabilities, again and again."""
        rng = np.random.default_rng(seed)
        return np.array([self.simulated(p, rng) for _ in range(resamples)])

    def lower_bound(self, p: Predictions, draws: Array, confidence: float, seed: int) -> float:
        """What the true value is above with this confidence, from draws of the bootstrap.

        Near zero the bootstrap cannot see that noise alone makes a calibration error. So where it shows much bias, zero
        is ruled out only if models that are calibrated by construction rarely reach the value.
        """
        value = self(p)
        low = min(one_sided(value, draws, confidence, self.bounds, "low"), value)
        suspect = self.of_calibration and low > 0 and np.mean(draws) - value > SUSPECT_BIAS * value
        if suspect and np.mean(self.under_calibration(p, len(draws), seed) >= value) > 1 - confidence:
            return self.bounds[0]
        return low

    def upper_bound(self, p: Predictions, draws: Array, confidence: float) -> float:
        """What the true value is below with this confidence."""
        value = self(p)
        return max(one_sided(value, draws, confidence, self.bounds, "high"), value)


@dataclass(frozen=True)
class RowMeasure(Measure):
    """The mean of one number per row."""

    def rows(self, p: Predictions) -> Array:
        raise TypeError(f"{type(self).__name__} does not say its value per row: define rows")

    def __call__(self, p: Predictions) -> float:
        return float(self.rows(p).mean())

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        return np.asarray(counts @ self.rows(p) / counts.sum(axis=1))


@dataclass(frozen=True)
class CurveMeasure(Measure):
    """A number read off the sorted curve of confidence against correctness."""

    def on(self, curve: Curve) -> float:
        raise TypeError(f"{type(self).__name__} does not say how to read the curve: define on")

    def curve(self, p: Predictions) -> Curve:
        """The scores and hits that are looked at."""
        return p.top_label

    def __call__(self, p: Predictions) -> float:
        return self.on(self.curve(p))

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        curve = self.curve(p)
        return np.array([self.on(curve.repeat(c)) for c in counts])

    def simulated(self, p: Predictions, rng: np.random.Generator) -> float:
        curve = self.curve(p)
        return self.on(curve.with_hits((rng.random(curve.n) < curve.scores).astype(np.float64)))


@dataclass(frozen=True)
class BinnedMeasure(CurveMeasure):
    """A number read off the bins of the curve, with every choice about the bins an option."""

    bins: int = 15
    scheme: Scheme = "width"
    closed: Closed = "right"
    em: Mass = "sort"

    of_calibration: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("bins", self.bins, 1)

    def of(self, bins: Bins) -> float:
        raise TypeError(f"{type(self).__name__} does not say how to read the bins: define of")

    def on(self, curve: Curve) -> float:
        return self.of(self.make_bins(curve))

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        if self.scheme != "width":
            return super().resampled(p, counts)
        # Fixed bins: a row stays in its bin, so a resample is three weighted counts.
        bin_of = np.empty(p.n, dtype=np.int64)
        size = self.make_bins(p.top_label).count.astype(np.int64)
        bin_of[p.top_label.order] = np.repeat(np.arange(self.bins), size)

        def sums(weights: Array) -> Array:
            return np.bincount(bin_of, weights, minlength=self.bins).astype(np.float64)

        made = [Bins(sums(c), sums(c * p.confidence), sums(c * p.correct), int(c.sum())) for c in counts]
        return np.array([self.of(bins) for bins in made])

    def make_bins(self, curve: Curve | ClassCurves) -> Bins:
        return curve.bins(self.bins, self.scheme, closed=self.closed, em=self.em)

    @property
    def bins_in_words(self) -> str:
        """For instance: 15 equal-width right-closed bins."""
        if self.scheme == "width":
            return f"{self.bins} equal-width {self.closed}-closed bins"
        rule = {
            "sort": "by position in the sorted list",
            "midpoint": "edges midway between chunks, ties together",
            "interp": f"interpolated edges, {'smallest' if self.closed == 'right' else 'largest'} value dropped",
            "stride": "edges at every floor(n/bins)-th value",
        }[self.em]
        side = ", left-closed" if self.closed == "left" and self.em != "sort" else ""
        return f"{self.bins} equal-mass bins ({rule}{side})"


@dataclass(frozen=True)
class ClassMeasure(BinnedMeasure):
    """A number read off the bins of every class's own curve."""

    resamples: ClassVar[int] = 200

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        return Measure.resampled(self, p, counts)

    def simulated(self, p: Predictions, rng: np.random.Generator) -> float:
        return Measure.simulated(self, p, rng)


def at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise InputError(name, expected=f"at least {least:g}", got=f"{value:g}", fix="give a larger value")


def _draw_labels(p: Predictions, rng: np.random.Generator) -> Ints:
    labels = np.empty(p.n, dtype=np.int64)
    for rows, probs in p.prob_rows():
        cumulative = probs.cumsum(axis=1)
        drawn = rng.random(len(probs)) * cumulative[:, -1]
        labels[rows] = (cumulative < drawn[:, None]).sum(axis=1)
    return labels
