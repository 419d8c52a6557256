"""Noise of class-wise calibration errors by drawing labels: with many classes a bin holds few labels or none.

The noise of such a bin is a count of rare events, which its own residuals underestimate (a bin without a label of its
class shows none). So labels are drawn from the model, after its temperature and class frequencies have been corrected.
"""

from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.temperature import find_temperature

DRAWS = 100
MOST_ELEMENTS = 2_000_000  # rows x classes: beyond, noise is nearly normal or drawing takes seconds
PRIOR_ROWS = 20.0  # of the model, beside the labels of a class, when class frequencies are corrected
GRID, FINE = 12, 49  # true errors whose value is simulated, and those between which values are interpolated
STANDS_OUT = 0.25  # standard errors taken from every gap to get the few; chosen on seeds 0 to 59 of the simulation
REACH = 1.6  # the largest true error looked at, over the observed one
NUISANCE = 0.0005  # chance that the true error of one model is left out of those looked at


@dataclass(frozen=True)
class LabelNoise:
    """Gaps that add up to a calibration error by their absolute values, and draws of the noise of each."""

    gaps: Array  # (cells,)
    noise: Array  # (draws, cells)

    @property
    def value(self) -> float:
        return float(np.abs(self.gaps).sum())

    @cached_property
    def floor(self) -> Array:
        """The error that noise alone would show, (draws,)."""
        return np.asarray(np.abs(self.noise).sum(axis=1))

    def low(self, tail: float) -> float:
        """A lower bound of the true error: a sum of |gap + noise| exceeds it by the sum of |noise| at most."""
        return max(self.value - float(np.quantile(self.floor, 1 - tail)), 0.0)

    @property
    def directions(self) -> tuple[Array, Array]:
        """Gaps of a total of 1, spread as observed, and in the few cells where they stand out of the noise alone."""
        size = np.abs(self.gaps)
        out = np.maximum(size - STANDS_OUT * self.noise.std(axis=0), 0.0)
        if not out.any():
            out = np.where(size == size.max(), size, 0.0)
        few = np.copysign(out, self.gaps)
        return self.gaps / (self.value or 1.0), few / (float(out.sum()) or 1.0)

    def expected_values(self, errors: Array, direction: Array) -> Array:
        """The value that each true error in this direction would show, (errors, draws)."""
        known = np.linspace(0.0, float(errors[-1]), GRID)
        values = np.stack([np.abs(error * direction + self.noise).sum(axis=1) for error in known])
        at = np.clip(np.searchsorted(known, errors) - 1, 0, GRID - 2)
        step = known[1] or 1.0
        share = ((errors - known[at]) / step)[:, None]
        return np.asarray((1 - share) * values[at] + share * values[at + 1])


@dataclass(frozen=True)
class ErrorPairs:
    """Pairs of true errors of two models on the same rows, and how well each explains the values observed.

    The bias of a value depends on the true error, which is unknown: the chance of the observed difference is taken for
    every pair of errors that could have shown the two values (Berger and Boos 1994), and the largest counts.
    """

    a: Array  # (errors,)
    b: Array  # (errors,)
    chance: Array  # (a, b), two-sided

    @classmethod
    def of(cls, a: LabelNoise, b: LabelNoise) -> "ErrorPairs":
        """Compare two models whose noise comes from the same draws of labels."""
        from scipy.special import ndtr, ndtri

        errors = np.linspace(0.0, REACH * max(a.value, b.value), FINE)
        values_a, values_b = (np.concatenate([m.expected_values(errors, d) for d in m.directions]) for m in (a, b))
        errors, widest = np.tile(errors, 2), -float(ndtri(NUISANCE / 2))
        index_a, index_b = _plausible(a.value, values_a, widest), _plausible(b.value, values_b, widest)
        difference = values_b[None, index_b] - values_a[index_a, None]
        off = np.abs(b.value - a.value - difference.mean(axis=2))
        spread = difference.std(axis=2, ddof=1)
        distance = np.divide(off, spread, out=np.where(off > 0, np.inf, 0.0), where=spread > 0)
        chance = np.minimum(2 * ndtr(-distance) + 2 * NUISANCE, 1.0)
        return cls(errors[index_a], errors[index_b], np.asarray(chance))

    @property
    def p_value(self) -> float:
        """The p-value of equal errors: the largest chance among the pairs of equal errors."""
        same = self.a[:, None] == self.b[None, :]
        return float(self.chance[same].max()) if same.any() else 2 * NUISANCE

    def ends(self, tail: float) -> tuple[float, float]:
        """The interval of the difference of the true errors, b minus a."""
        differences = (self.b[None, :] - self.a[:, None])[self.chance > 2 * tail]
        return (float(differences.min()), float(differences.max())) if differences.size else (np.inf, -np.inf)


def correct_probs(p: Predictions) -> Array:
    """The probabilities (n, k) after a temperature, and with class frequencies pulled to those of the labels."""
    fit = find_temperature(p)
    q = p.with_temperature(fit.T) if fit.diagnosis == "converged" else p
    probs = np.concatenate([block for _, block in q.prob_rows()])
    w = np.ones(p.n) if p.weights is None else np.asarray(p.weights, dtype=np.float64)
    w = w * (p.n / w.sum())
    observed, expected = np.bincount(p.labels, w, minlength=p.k), w @ probs
    probs *= (observed + PRIOR_ROWS) / (expected + PRIOR_ROWS)
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


def draw_labels(probs: Array, seed: int, draws: int = DRAWS) -> Ints:
    """Labels (draws, n) of rows with these probabilities (n, k)."""
    rng = np.random.default_rng(seed)
    cumulative = probs.cumsum(axis=1)
    cumulative /= cumulative[:, -1:]
    uniform = rng.random((len(probs), draws))
    labels = np.empty((len(probs), draws), dtype=np.int64)
    for row, (c, u) in enumerate(zip(cumulative, uniform, strict=True)):
        labels[row] = c.searchsorted(u, side="right")
    return np.asarray(np.minimum(labels, probs.shape[1] - 1).T)


def _plausible(value: float, values: Array, widest: float) -> Ints:
    """The true errors that could have shown this value; the nearest alone where none could."""
    off, spread = np.abs(value - values.mean(axis=1)), values.std(axis=1, ddof=1)
    index = np.flatnonzero(off <= widest * spread)
    return index if len(index) else np.array([int(off.argmin())])
