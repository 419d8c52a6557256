"""What a measure promises, and the three shapes measures come in: of rows, of the curve, of class curves."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.catalogue import check_options, spec_of
from calibrant.core.class_curves import ClassCurves
from calibrant.core.curve import Bins, Closed, Curve, Mass, Scheme, check_bins, equal_width_edges
from calibrant.core.errors import InputError
from calibrant.core.extras import Shape
from calibrant.core.intervals import Interval, basic_interval
from calibrant.core.noise import Entries, Noisy, Sampling, Spread
from calibrant.core.predictions import Predictions
from calibrant.core.shapes import shape_words
from calibrant.core.weighted import WeightedCurves

SUSPECT_BIAS = 0.1  # of the value; a calibrated model shows about 0.4
MOST_CELLS = 500_000  # bins x classes whose joint noise fits into memory
FEW_ROWS, FEW_ELEMENTS = 100, 1_000_000  # rows a class that make noise normal; rows x classes that are soon simulated

SHAPES: tuple[Shape, ...] = ("classes", "binary", "confidence", "choices")
SHAPE_WORDS: dict[Shape, dict[str, str]] = {  # what definitions call the score, for each shape
    "classes": {},
    "choices": {},
    "binary": {
        "top-label": "positive-class",
        "confidence": "P(positive)",
        "incorrect": "negative",
        "correct": "positive",
    },
    "confidence": {"top-label": "confidence"},
}

Direction = Literal["down", "up", "zero", "none"]


@dataclass(frozen=True)
class Measure:
    """A number about predictions: pure, blind to the order of rows and to a constant added to a row of logits."""

    aliases: ClassVar[tuple[str, ...]] = ()  # other names it is found by
    title: ClassVar[str]
    reference: ClassVar[str]
    direction: ClassVar[Direction] = "down"  # which way is better
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    resamples: ClassVar[int] = 1000  # how many the interval takes unless told otherwise
    shapes: ClassVar[tuple[Shape, ...]] = SHAPES  # of predictions that it can be computed of
    covers: ClassVar[str] = ""  # what a 95 % interval covers, where that is not 93 to 99 %
    of_calibration: ClassVar[bool] = False  # zero for a perfectly calibrated model of infinitely many rows
    needs_both: ClassVar[bool] = False  # NaN unless some predictions are right and some wrong
    fixed_maps: ClassVar[bool] = False  # fits maps, and resamples do not fit them again

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, p: Predictions) -> float:
        raise TypeError(f"{type(self).__name__} does not say how it is computed: define __call__")

    @property
    def definition(self) -> str:
        """What exactly the number is, in words, with the options that matter."""
        return self.title

    def defined(self, p: Predictions) -> str:
        """The definition for the shape of these predictions."""
        words = SHAPE_WORDS[p.shape]
        made = self.definition
        for top, own in words.items():
            made = made.replace(top, own)
        return made

    def check_shape(self, p: Predictions) -> None:
        """Refuse predictions that cannot answer."""
        if p.shape not in self.shapes:
            raise InputError(
                spec_of(self),
                expected=" or ".join(map(shape_words, self.shapes)),
                got=shape_words(p.shape),
                fix="ask for a measure that needs no more, for instance ece",
            )

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        """The measure on resamples: row i of the data occurs counts[r, i] times in resample r."""
        rows = np.arange(p.n)
        return np.array([self(p.take(np.repeat(rows, c))) for c in counts])

    def simulated(self, p: Predictions, rng: np.random.Generator) -> float:
        """The measure if the probabilities were exactly right: labels drawn from them."""
        return self(Predictions(p.values, _draw_labels(p, rng), p.kind, p.extras))

    def under_calibration(self, p: Predictions, resamples: int, seed: int) -> Array:
        """The measure on labels drawn from the probabilities, again and again."""
        rng = np.random.default_rng(seed)
        return np.array([self.simulated(p, rng) for _ in range(resamples)])

    def spread(self, p: Predictions, rows: Sampling) -> Spread | None:
        """The noise that sampling the rows gives the measure, where that is known without resampling them."""
        return None

    def rough(self, p: Predictions) -> bool:
        """Are there too few rows for normal noise, and so few that calibrated worlds are soon simulated?"""
        return False

    def bootstrapped(self, p: Predictions, drawn: Array, tail: float, seed: int) -> Interval:
        """The same from the measure on resampled rows, by the basic bootstrap.

        Near zero the bootstrap cannot see that noise alone makes a calibration error. So where it shows much bias, zero
        is ruled out only if models that are calibrated by construction rarely reach the value.
        """
        value = self(p)
        found = basic_interval(value, drawn, 1 - 2 * tail, self.bounds)
        suspect = self.of_calibration and found.low > 0 and np.mean(drawn) - value > SUSPECT_BIAS * value
        if suspect and np.mean(self.under_calibration(p, len(drawn), seed) >= value) > tail:
            return Interval(self.bounds[0], found.high)
        return found


@dataclass(frozen=True)
class RowMeasure(Measure):
    """The mean of one number per row."""

    def rows(self, p: Predictions) -> Array:
        raise TypeError(f"{type(self).__name__} does not say its value per row: define rows")

    def __call__(self, p: Predictions) -> float:
        return p.mean(self.rows(p))

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        weights = counts if p.weights is None else counts * p.weights
        return np.asarray(weights @ self.rows(p) / weights.sum(axis=1))


@dataclass(frozen=True)
class CurveMeasure(Measure):
    """A number read off the sorted curve of scores against hits: confidence and correctness, or P(positive) and truth.

    `scope=top` reads confidence and correctness of binary predictions too.
    """

    scope: Literal["event", "top"] = field(default="event", kw_only=True)

    def on(self, curve: Curve) -> float:
        raise TypeError(f"{type(self).__name__} does not say how to read the curve: define on")

    def curve(self, p: Predictions) -> Curve:
        """The scores and hits that are looked at."""
        return p.top_label if self.scope == "top" else p.curve

    def defined(self, p: Predictions) -> str:
        if self.scope == "top" or p.shape != "binary":
            return super().defined(p) if p.shape != "binary" else self.definition
        made = super().defined(p)
        return made if made != self.definition else f"{made}; by P(positive), a hit is a positive row"

    def __call__(self, p: Predictions) -> float:
        return self.on(self.curve(p))

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        curve = self.curve(p)
        return np.array([self.on(curve.repeat(c)) for c in counts])

    def simulated(self, p: Predictions, rng: np.random.Generator) -> float:
        curve = self.curve(p)
        return self.on(curve.with_hits((rng.random(curve.n) < curve.scores).astype(np.float64)))


@dataclass(frozen=True)
class Binned(Measure):
    """Every choice about bins, as options."""

    bins: int = 15
    scheme: Scheme = "width"
    closed: Closed = "right"
    em: Mass = "sort"

    of_calibration: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bins(self.bins)

    def of(self, bins: Bins) -> float:
        raise TypeError(f"{type(self).__name__} does not say how to read the bins: define of")

    def spread_of(self, bins: Bins, sums: Noisy) -> Spread | None:
        """From the noise of each bin's residuals (score minus hit, over n); None where that is not known."""
        return None

    def make_bins(self, curve: Curve | ClassCurves | WeightedCurves) -> Bins:
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
class BinnedMeasure(CurveMeasure, Binned):
    """A number read off the bins of the curve."""

    def on(self, curve: Curve) -> float:
        return self.of(self.make_bins(curve))

    def spread(self, p: Predictions, rows: Sampling) -> Spread | None:
        curve = self.curve(p)
        bins = self.make_bins(curve)
        sums = rows.gather(curve.order, self._bin_of(curve), curve.scores - curve.hits, self.bins)
        return self.spread_of(bins, Noisy((bins.score_sum - bins.hit_sum) / bins.n, sums.noise))

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        if self.scheme != "width":
            return super().resampled(p, counts)
        # Fixed bins: a row stays in its bin, so a resample is three weighted counts.
        curve = self.curve(p)
        bin_of = self._bin_of(curve)

        def sums(weights: Array) -> Array:
            return np.bincount(bin_of, weights, minlength=self.bins).astype(np.float64)

        def made(c: Ints) -> Bins:
            w = c[curve.order].astype(np.float64) if p.weights is None else c[curve.order] * curve.weights
            return Bins(sums(w), sums(w * curve.scores), sums(w * curve.hits), float(w.sum()), curve.effective)

        return np.array([self.of(made(c)) for c in counts])

    def _bin_of(self, curve: Curve) -> Ints:
        return curve.bin_of(self.bins, self.scheme, closed=self.closed, em=self.em)


@dataclass(frozen=True)
class ClassMeasure(Binned):
    """A number read off the bins of every class's own curve."""

    resamples: ClassVar[int] = 200
    shapes: ClassVar[tuple[Shape, ...]] = ("classes", "binary")

    def spread(self, p: Predictions, rows: Sampling) -> Spread | None:
        cells = self.bins * p.k
        if cells > MOST_CELLS:
            return None
        sums, bins = rows.gather_jointly(self.entries(p), cells), self.class_bins(p)
        return self.spread_of(bins, Noisy(((bins.score_sum - bins.hit_sum) / bins.n).ravel(), sums.noise))

    def rough(self, p: Predictions) -> bool:
        return p.n < FEW_ROWS * p.k and p.n * p.k <= FEW_ELEMENTS

    def of(self, bins: Bins) -> float:
        return self.of_classes(bins)

    def of_classes(self, bins: Bins) -> float:
        """From bins of all classes at once, (k, bins)."""
        raise TypeError(f"{type(self).__name__} does not say how to read the bins: define of_classes")

    @property
    def above(self) -> float:
        """Only probabilities above this are looked at."""
        return -1.0

    def curves(self, p: Predictions) -> Iterator[ClassCurves | WeightedCurves]:
        return p.class_curves()

    def class_bins(self, p: Predictions) -> Bins:
        """The bins of all classes, (k, bins)."""
        check_bins(self.bins, p.k)
        none = np.zeros((1, self.bins))
        made = [Bins(none, none, none, 0) if c.empty else self.make_bins(c) for c in self.curves(p)]
        count, score_sum, hit_sum = (
            np.concatenate([getattr(b, name) for b in made]) for name in ("count", "score_sum", "hit_sum")
        )
        whole = p.curve
        return Bins(count, score_sum, hit_sum, whole.total, whole.effective)

    def inner_edges(self, p: Predictions) -> Array:
        """What parts the bins of each class, (k, bins - 1)."""
        none = np.ones((1, self.bins - 1))
        made = [none if c.empty else c.inner_edges(self.bins, self.scheme, self.em) for c in self.curves(p)]
        return np.concatenate(made)

    def entries(self, p: Predictions) -> Iterator[Entries]:
        """Row, cell (class and bin) and residual of every probability."""
        side: Literal["left", "right"] = "left" if self.closed == "right" else "right"
        inner = equal_width_edges(self.bins)[1:-1] if self.scheme == "width" else self.inner_edges(p)
        first = self.bins * np.arange(p.k)
        for rows, probs in p.prob_rows():
            if inner.ndim == 1:
                place = inner.searchsorted(probs, side)
            else:
                place = np.stack([e.searchsorted(c, side) for e, c in zip(inner, probs.T, strict=True)], axis=1)
            residual = probs.copy()
            residual[np.arange(len(probs)), p.labels[rows]] -= 1.0
            unit = np.broadcast_to(np.arange(rows.start, rows.start + len(probs))[:, None], probs.shape)
            kept = probs > self.above
            yield unit[kept], (place + first)[kept], residual[kept]


def _draw_labels(p: Predictions, rng: np.random.Generator) -> Ints:
    labels = np.empty(p.n, dtype=np.int64)
    for rows, probs in p.prob_rows():
        cumulative = probs.cumsum(axis=1)
        drawn = rng.random(len(probs)) * cumulative[:, -1]
        labels[rows] = (cumulative < drawn[:, None]).sum(axis=1)
    return labels
