"""Measures of classes: numbers read off the bins of every class's own curve."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.binning import check_bins, equal_width_edges
from calibrant.core.curves.class_curves import ClassCurves
from calibrant.core.curves.curve import Bins
from calibrant.core.curves.weighted import WeightedCurves
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.estimate import Draws, Estimate, Widest
from calibrant.core.statistics.label_noise import MOST_ELEMENTS, correct_probs, draw_labels, invert, noise_above
from calibrant.core.statistics.sampling import Entries, NoisyValues, Sampling
from calibrant.measures._measure import Streams
from calibrant.measures._of_bins import BinOptions

MOST_CELLS = 500_000  # bins x classes whose joint noise fits into memory
FEW_ROWS = 100  # rows a class that make noise normal


@dataclass(frozen=True)
class ClassMeasure(BinOptions):
    """A number read off the bins of every class's own curve."""

    resamples: ClassVar[int] = 200
    streams: ClassVar[Streams] = "no"
    tasks: ClassVar[tuple[Task, ...]] = ("multiclass", "binary")

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        """With few rows a class, the lower end also counts the noise of labels that are drawn."""
        whole = self._estimate(p, rows)
        few = p.n < FEW_ROWS * p.k and not rows.subtracted
        if not few or whole.noise is None or not self._by_labels(p):
            return whole

        def of_labels() -> Draws:
            return noise_above(self._label_noise(rows.seed, p)[0])

        return self.with_noise(whole.value, Widest(first=whole.noise, second=of_labels, above=0.0))

    def estimate_difference(self, a: Predictions, b: Predictions, rows: tuple[Sampling, Sampling]) -> Estimate:
        """On the same rows by the same drawn labels, where the noise can be drawn by them."""
        if not rows[0].paired or not self._by_labels(a) or not self._by_labels(b):
            return super().estimate_difference(a, b, rows)
        of_a, of_b = (
            own.known[self].value if self in own.known else self(p) for p, own in zip((a, b), rows, strict=True)
        )
        return Estimate(value=of_b - of_a, terms=(of_a, of_b), noise=invert(*self._label_noise(rows[0].seed, a, b)))

    def _estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        cells = self.bins * p.k
        if cells > MOST_CELLS:
            return self.resampled_estimate(p, self(p), rows)
        sums, bins = rows.gather_jointly(self.entries(p), cells), self.class_bins(p)
        residuals = NoisyValues(((bins.score_sum - bins.outcome_sum) / bins.n).ravel(), sums.noise)
        noise, value = self.noise_of(bins, residuals), self.of_classes(bins)
        return self.resampled_estimate(p, value, rows) if noise is None else self.with_noise(value, noise)

    def cell_scale(self, bins: Bins) -> Array | None:
        """The factor of each cell's absolute residual sum (over n) in the value; None where it is no such sum."""
        return None

    def _by_labels(self, p: Predictions) -> bool:
        """Whether the noise can be drawn by labels: rows of one cluster share theirs, which drawn labels do not."""
        small = p.n * p.k <= MOST_ELEMENTS and self.bins * p.k <= MOST_CELLS
        return small and p.clusters is None and self.cell_scale(self.class_bins(p)) is not None

    def _label_noise(self, seed: int, *models: Predictions) -> list[NoisyValues]:
        """Noise of models on the same rows, from labels drawn once from the mean of their corrected probabilities."""
        probs = np.asarray(sum(correct_probs(p) for p in models)) / len(models)
        labels = draw_labels(probs, seed)
        rows = Sampling(n=len(probs), draws=len(labels), seed=seed, weights=models[0].weights)
        return [self._cell_noise(p, probs, labels, rows) for p in models]

    def _cell_noise(self, p: Predictions, probs: Array, labels: Ints, rows: Sampling) -> NoisyValues:
        """The noise of each cell if rows are drawn, and their labels (draws, n) from probabilities (n, k)."""
        draws, cells, bins = len(labels), self.bins * p.k, self.class_bins(p)
        w = np.ones(p.n) if p.weights is None else np.asarray(p.weights, dtype=np.float64)
        place, off = np.full((p.n, p.k), -1, dtype=np.int64), np.zeros((p.n, p.k))
        for row, cell, residual in self.entries(p):
            at = row, cell // self.bins
            place[at] = cell
            off[at] = residual + (cell // self.bins == p.labels[row]) - probs[at]
        used = place >= 0
        expected = np.bincount(place[used], (w[:, None] * probs)[used], minlength=cells)
        every, counts = np.arange(p.n), np.empty((draws, cells))
        for counts_of_draw, y in zip(counts, labels, strict=True):
            cell = place[every, y]
            counts_of_draw[:] = np.bincount(cell[cell >= 0], w[cell >= 0], minlength=cells)
        scale = self.cell_scale(bins)
        assert scale is not None
        row = np.broadcast_to(every[:, None], place.shape)
        noise = rows.gather_jointly([(row[used], place[used], off[used])], cells).noise[:draws]
        filled, scale = np.bincount(place[used], minlength=cells) > 0, np.broadcast_to(scale, cells)
        gaps = (bins.score_sum - bins.outcome_sum).ravel() * scale / bins.n
        return NoisyValues(gaps[filled], (((expected - counts) / w.sum() + noise) * scale)[:, filled])

    def from_bins(self, bins: Bins) -> float:
        return self.of_classes(bins)

    def of_classes(self, bins: Bins) -> float:
        """The value from bins of all classes at once, (k, bins)."""
        raise TypeError(f"{type(self).__name__} does not say how to read the bins: define of_classes")

    @property
    def above(self) -> float:
        """Only probabilities above this threshold are counted; -1 counts all."""
        return -1.0

    def curves(self, p: Predictions) -> Iterator[ClassCurves | WeightedCurves]:
        return p.class_curves()

    def class_bins(self, p: Predictions) -> Bins:
        """The bins of all classes, (k, bins)."""
        check_bins(self.bins, p.k)
        if self.scheme == "width" and self.above < 0 and (fast := p.width_bins(self.bins, self.closed)) is not None:
            return fast
        none = np.zeros((1, self.bins))
        bins = [Bins(none, none, none, 0) if c.empty else self.make_bins(c) for c in self.curves(p)]
        count, score_sum, outcome_sum = (
            np.concatenate([getattr(b, name) for b in bins]) for name in ("count", "score_sum", "outcome_sum")
        )
        whole = p.curve
        return Bins(count, score_sum, outcome_sum, whole.total, whole.weight_unit)

    def inner_edges(self, p: Predictions) -> Array:
        """The edges between the bins of each class, (k, bins - 1)."""
        none = np.ones((1, self.bins - 1))
        edges = [none if c.empty else c.inner_edges(self.binning) for c in self.curves(p)]
        return np.concatenate(edges)

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
            keep = probs > self.above
            yield unit[keep], (place + first)[keep], residual[keep]
