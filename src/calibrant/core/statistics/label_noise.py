"""Noise of class-wise calibration errors by drawing labels: with many classes a bin holds few labels or none.

The noise of such a bin is a count of rare events, which its own residuals underestimate (a bin without a label of its
class shows none). So labels are drawn from the model, after its temperature and class frequencies have been corrected.
"""

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws, Inverted
from calibrant.core.statistics.sampling import NoisyValues
from calibrant.core.statistics.temperature import find_temperature

DRAWS = 100
MOST_ELEMENTS = 2_000_000  # rows x classes: beyond, noise is nearly normal or drawing takes seconds
PRIOR_ROWS = 20.0  # of the model, beside the labels of a class, when class frequencies are corrected
GRID, FINE = 12, 49  # true errors whose value is simulated, and those between which values are interpolated
STANDS_OUT = 0.25  # standard errors taken from every gap to get the few; chosen on seeds 0 to 59 of the simulation
REACH = 1.6  # the largest true error looked at, over the observed one
NUISANCE = 0.0005  # chance that the true error of one model is left out of those looked at


def noise_above(field: NoisyValues) -> Draws:
    """Noise for a lower bound of the sum of |gaps|: a sum of |gap + noise| exceeds it by the sum of |noise| at most."""
    floor = np.asarray(np.abs(field.noise).sum(axis=1))
    return Draws(lower=floor, upper=floor, centre=_total(field))


def invert(a: NoisyValues, b: NoisyValues) -> Inverted:
    """Compare the errors of two models on the same rows, whose noise comes from the same draws of labels."""
    if np.array_equal(a.value, b.value) and np.array_equal(a.noise, b.noise):  # one model differs from itself by 0
        return Inverted(a=np.zeros(1), b=np.zeros(1), chance=np.ones((1, 1)), least=1.0)
    from scipy.special import ndtr, ndtri

    value_a, value_b = _total(a), _total(b)
    errors = np.linspace(0.0, REACH * max(value_a, value_b), FINE)
    values_a, values_b = (np.concatenate([expected_values(m, errors, d) for d in directions(m)]) for m in (a, b))
    errors, widest = np.tile(errors, 2), -float(ndtri(NUISANCE / 2))
    index_a, index_b = _plausible(value_a, values_a, widest), _plausible(value_b, values_b, widest)
    difference = values_b[None, index_b] - values_a[index_a, None]
    off = np.abs(value_b - value_a - difference.mean(axis=2))
    spread = difference.std(axis=2, ddof=1)
    distance = np.divide(off, spread, out=np.where(off > 0, np.inf, 0.0), where=spread > 0)
    chance = np.minimum(2 * ndtr(-distance) + 2 * NUISANCE, 1.0)
    return Inverted(a=errors[index_a], b=errors[index_b], chance=np.asarray(chance), least=2 * NUISANCE)


def directions(field: NoisyValues) -> tuple[Array, Array]:
    """Gaps of a total of 1, spread as observed, and in the few cells where they stand out of the noise alone."""
    size = np.abs(field.value)
    out = np.maximum(size - STANDS_OUT * field.noise.std(axis=0), 0.0)
    if not out.any():
        out = np.where(size == size.max(), size, 0.0)
    few = np.copysign(out, field.value)
    return field.value / (_total(field) or 1.0), few / (float(out.sum()) or 1.0)


def expected_values(field: NoisyValues, errors: Array, direction: Array) -> Array:
    """The value that each true error in this direction would show, (errors, draws)."""
    known = np.linspace(0.0, float(errors[-1]), GRID)
    values = np.stack([np.abs(error * direction + field.noise).sum(axis=1) for error in known])
    at = np.clip(np.searchsorted(known, errors) - 1, 0, GRID - 2)
    step = known[1] or 1.0
    share = ((errors - known[at]) / step)[:, None]
    return np.asarray((1 - share) * values[at] + share * values[at + 1])


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


def _total(field: NoisyValues) -> float:
    return float(np.abs(field.value).sum())


def _plausible(value: float, values: Array, widest: float) -> Ints:
    """The true errors that could have shown this value; the nearest alone where none could."""
    off, spread = np.abs(value - values.mean(axis=1)), values.std(axis=1, ddof=1)
    index = np.flatnonzero(off <= widest * spread)
    return index if len(index) else np.array([int(off.argmin())])
