"""Noise of calibration errors: each is a norm of residuals gathered in bins, and the noise of those sums is known.

An absolute value turns noise into error, so a calibration error is biased upwards: not at all where the gaps are far
from 0, most where they are 0, and nobody can know which. Each end of an interval takes the side that is safe.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Integers, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves.curve import BLOCK, Bins
from calibrant.core.parallel import pieces
from calibrant.core.statistics.bootstrap import Interval

MOST_GROUPS, FEWEST_GROUPS = 1000, 200  # random groups of rows that joint noise is learned from
GROUP_ELEMENTS = 1 << 23  # groups x bins held at a time
DRAW_ELEMENTS = 1 << 24  # draws x bins held at a time

Entries = tuple[Ints, Integers, Array]  # row, bin and residual


@dataclass(frozen=True)
class NoisyValues:
    """A value for each bin (or point), and draws of the noise that sampling the rows gave it."""

    value: Array  # (m,)
    noise: Array  # (draws, m), each draw centred at 0

    @property
    def error(self) -> Array:
        """Standard error of each value."""
        return np.asarray(np.sqrt((self.noise**2).mean(axis=0)))

    def scale(self, by: Array) -> "NoisyValues":
        return NoisyValues(self.value * by, self.noise * by)

    def through(self, matrix: Array) -> "NoisyValues":
        """The values and their noise after a linear map (m, m')."""
        return NoisyValues(self.value @ matrix, self.noise @ matrix)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The sampling of rows: their number, weights and clusters, and the seed and number of draws of their noise.

    Rows of one cluster (0, 1, ...) come together, so they share their noise. With `paired`, whatever is gathered from
    these rows shares its noise row by row: two models on the same rows. With `calibrated`, draws are what a calibrated
    model would show: residuals of whole clusters with random signs, around 0.

    >>> three = Sampling(n=3, draws=4)
    >>> values = three.gather(np.array([0, 1, 2]), np.array([0, 1, 1]), np.array([0.1, -0.4, 0.2]), 2)
    >>> values.value.round(4), values.noise.shape
    (array([ 0.0333, -0.0667]), (4, 2))
    """

    n: int
    draws: int = 1000
    seed: int = 0
    weights: Array | None = None
    clusters: Integers | None = None
    paired: bool = False
    calibrated: bool = False

    @property
    def joint(self) -> bool:
        """Whether rows share their noise, with each other or with those of another model."""
        return self.paired or self.clusters is not None

    def gather(
        self, row: Ints | Callable[[], Ints], bin_of: Integers, residual: Array | Callable[[slice], Array], bins: int
    ) -> NoisyValues:
        """Weighted sum of the residuals in each bin, over the sum of weights; a row in bin -1 is in none.

        Each row stands in one bin, which makes bins independent to first order: their noise needs no resampled rows.
        `row` may be how to find the rows, which is needed only where they differ in weight or share their noise;
        `residual` may be how to find those of some samples.
        """
        residuals = residual if callable(residual) else residual.__getitem__
        if not self.joint and self.weights is None:
            return self._gather_alike(bin_of, residuals, bins)
        row = row() if callable(row) else row
        if self.joint:
            parts = pieces(len(row), BLOCK)
            return self.gather_jointly(((row[part], bin_of[part], residuals(part)) for part in parts), bins)
        inside = bin_of >= 0
        row, bin_of, off = row[inside], bin_of[inside], residuals(slice(None))[inside]
        w = self._weights[row]

        def sums(values: Array) -> Array:
            return np.bincount(bin_of, values, minlength=bins).astype(np.float64)

        total, square = self._weights.sum(), float(self._weights @ self._weights)
        value = sums(w * off) / total
        squares = sums((w * off) ** 2) - 2 * value * sums(w**2 * off) + value**2 * square
        return self.independent(value, np.sqrt(np.maximum(squares, 0.0)) / total)

    def _gather_alike(self, bin_of: Integers, residuals: Callable[[slice], Array], bins: int) -> NoisyValues:
        """Mean residual in each bin for rows that all count alike, some rows at a time."""
        first, second = np.zeros(bins), np.zeros(bins)
        for part in pieces(len(bin_of), BLOCK):
            inside = bin_of[part] >= 0
            b, r = bin_of[part][inside], residuals(part)[inside]
            first += np.bincount(b, r, minlength=bins)
            second += np.bincount(b, r**2, minlength=bins)
        value = first / self.n
        squares = second - 2 * value * first + value**2 * self.n
        return self.independent(value, np.sqrt(np.maximum(squares, 0.0)) / self.n)

    def gather_jointly(self, blocks: Iterable[Entries], bins: int) -> NoisyValues:
        """Weighted means in bins where a row has residuals in several, or shares its noise with others; bin -1 is none.

        Rows (or clusters) are dealt at random into groups, and a draw weighs the groups by normal numbers: this has
        the covariance of a bootstrap.
        """
        units = self.n if self.clusters is None else int(self.clusters.max()) + 1
        groups = min(units, MOST_GROUPS, max(FEWEST_GROUPS, GROUP_ELEMENTS // bins))
        group, weights = _random_groups(self.seed, units, groups, self._affordable(bins), self.calibrated)
        group = group if self.clusters is None else group[self.clusters]
        sums = np.zeros(groups * bins)
        for row, bin_of, residual in blocks:
            inside = np.flatnonzero(bin_of >= 0)
            weighted = residual[inside] if self.weights is None else self._weights[row[inside]] * residual[inside]
            np.add.at(sums, group[row[inside]].astype(np.int64) * bins + bin_of[inside], weighted)
        group_sums, size = sums.reshape(groups, bins), self._group_sizes(group, groups)
        total = size.sum()
        value = group_sums.sum(axis=0) / total
        if self.calibrated:
            return NoisyValues(value, weights @ (group_sums / total) * np.sqrt(groups / max(groups - 1, 1)))
        group_sums = (group_sums - size[:, None] * value) / total * np.sqrt(groups / max(groups - 1, 1))
        return NoisyValues(value, weights @ group_sums)

    def _group_sizes(self, group: Integers, groups: int) -> Array:
        """The weight of the rows in each group; without weights some rows at a time."""
        if self.weights is not None:
            return np.bincount(group, self.weights, groups).astype(np.float64)
        sizes = np.zeros(groups)
        for part in pieces(len(group), BLOCK):
            sizes += np.bincount(group[part], minlength=groups)
        return sizes

    def independent(self, value: Array, error: Array) -> NoisyValues:
        """Draw normal noise of these standard errors."""
        rng = np.random.default_rng(self.seed)
        return NoisyValues(value, rng.standard_normal((self._affordable(len(value)), len(value))) * error)

    @cached_property
    def _weights(self) -> Array:
        return np.ones(self.n) if self.weights is None else np.asarray(self.weights, dtype=np.float64)

    def _affordable(self, bins: int) -> int:
        return min(self.draws, max(DRAW_ELEMENTS // max(bins, 1), 100))


@lru_cache(maxsize=1)
def _random_groups(seed: int, units: int, groups: int, draws: int, signs: bool) -> tuple[npt.NDArray[np.int16], Array]:
    """Group of each unit (at most 1,000) and weight of each group in each draw, kept for the next measure."""
    rng = np.random.default_rng(seed)
    group = (rng.permutation(units) % groups).astype(np.int16)
    weights = rng.choice([-1.0, 1.0], (draws, groups)) if signs else rng.standard_normal((draws, groups))
    return group, weights


@dataclass(frozen=True)
class Spread:
    """A calibration error and draws of its noise as seen from two sides, and the error that noise alone makes."""

    value: float
    straight: Array  # as if no gap changed its sign: safe for an upper end
    kinked: Array  # as if gaps near 0 were 0, so that their noise is pure error: safe for a lower end
    floor: Array  # as if all gaps were 0

    def ends(self, tail: float) -> Interval:
        """The interval of the true error, which misses it on each side with a chance of `tail`."""
        low = self.value - float(np.quantile(self.kinked, 1 - tail))
        if (self.floor >= self.value).mean() > tail:
            low = 0.0
        return Interval(max(low, 0.0), max(self.value - float(np.quantile(self.straight, tail)), 0.0))

    def at(self, value: float) -> "Spread":
        """The spread with the same noise around a value that is known more exactly."""
        return Spread(value, self.straight, self.kinked, self.floor)

    def square(self) -> "Spread":
        def of(draws: Array) -> Array:
            return np.asarray(self.value**2 - np.maximum(self.value - draws, 0.0) ** 2)

        return Spread(self.value**2, of(self.straight), of(self.kinked), self.floor**2)


def of_sum(field: NoisyValues, *, above_only: bool = False) -> Spread:
    """The spread of the sum of |v|; with `above_only` of the values above 0 alone."""
    g, noise = field.value, field.noise
    sign = np.where(g > 0, 1.0, 0.0) if above_only else np.sign(g)
    folded = np.maximum(noise, 0.0) if above_only else np.abs(noise)
    floor = folded.sum(axis=1)
    near = np.abs(g) < _turn(floor) * field.error
    kinked = noise[:, ~near] @ sign[~near] + folded[:, near].sum(axis=1)
    return Spread(float(sign @ g), noise @ sign, kinked, floor)


def of_norm(field: NoisyValues, value: float | None = None) -> Spread:
    """The spread of the root of the sum of v squared, by the true norms that would show such a value.

    A true norm of x in some direction shows x^2 + 2 x (noise along it) + (noise)^2: for each draw, the square that is
    seen at one x. The direction is the one seen; since noise may hide the true one, the straight side also tries the
    direction that noise prefers, and takes the wider.
    """
    error = float(np.linalg.norm(field.value)) if value is None else value
    floor = np.linalg.norm(field.noise, axis=1)

    def off(direction: Array) -> Array:
        along = field.noise @ direction / (float(np.linalg.norm(direction)) or 1.0)
        inside = along**2 - floor**2 + error**2
        return np.where(inside > 0, error + along - np.sqrt(np.maximum(inside, 0.0)), error)

    observed, preferred = off(field.value), off(_noisiest(field.noise))
    wider = min(observed, preferred, key=lambda draws: float(np.quantile(draws, 0.025)))
    return Spread(error, wider, observed, floor)


def of_largest(field: NoisyValues, *, unequal: bool = False) -> Spread:
    """The spread of the largest |v|: any value within two standard errors of it may be the true largest.

    With `unequal` noise, a value that is smaller but far less certain may be it as well: the straight side is that of
    the value whose own upper end is the highest.
    """
    size, spread = np.abs(field.value), field.error
    top = int(size.argmax())
    highest = int((size + 2 * spread).argmax()) if unequal else top
    signed = field.noise * np.sign(field.value)
    near = size >= size[top] - 2 * np.maximum(spread, spread[top])
    floor = np.abs(field.noise).max(axis=1)
    straight = signed[:, highest] + (size[top] - size[highest])
    return Spread(float(size[top]), straight, signed[:, near].max(axis=1), floor)


def of_range(field: NoisyValues) -> Spread:
    """The spread of the largest value minus the smallest: any within two standard errors of either may be it."""
    top, bottom = int(field.value.argmax()), int(field.value.argmin())
    noise = field.noise

    def near(end: int, sign: float) -> Array:
        off = sign * (field.value[end] - field.value)
        return np.asarray(off <= 2 * np.sqrt(((noise - noise[:, [end]]) ** 2).mean(axis=0)))

    kinked = noise[:, near(top, 1.0)].max(axis=1) - noise[:, near(bottom, -1.0)].min(axis=1)
    value = float(field.value[top] - field.value[bottom])
    return Spread(value, noise[:, top] - noise[:, bottom], kinked, np.ptp(noise, axis=1))


def of_quantile(field: NoisyValues, share: Array, level: float) -> Spread:
    """The spread of the level that a share of |v| lies below, where v at each point stands for a share of the rows.

    Which points lie at that level is known only up to noise, and where many do their noise partly cancels. So each side
    also tries the noise of the one point that is nearest to the level, and takes the wider.
    """
    size, noise = np.abs(field.value), field.noise
    signed = noise * np.where(field.value < 0, -1.0, 1.0)

    def quantile(values: Array) -> Array:
        order = np.argsort(values, axis=1)
        below = np.cumsum(share[order], axis=1)
        place = (below < level * below[:, -1:] - 1e-12).sum(axis=1)
        return np.asarray(np.take_along_axis(values, np.take_along_axis(order, place[:, None], axis=1), axis=1)[:, 0])

    floor = quantile(np.abs(noise))
    near = size < _turn(np.abs(noise) @ share) * field.error
    value = float(quantile(size[None])[0])
    alone = signed[:, np.abs(size - value).argmin()]
    straight = min(quantile(size + signed) - value, alone, key=lambda draws: float(np.quantile(draws, 0.025)))
    kinked = quantile(np.where(near, np.abs(noise), size + signed)) - quantile(np.where(near, 0.0, size)[None])
    kinked = max(kinked, alone, key=lambda draws: float(np.quantile(draws, 0.975)))
    return Spread(value, straight, kinked, floor)


def difference_draws(a: Spread, b: Spread) -> tuple[Array, Array]:
    """Noise of b - a for the lower and for the upper end; both spreads must be of paired draws on the same rows."""
    return b.kinked - a.straight, b.straight - a.kinked


def per_share(bins: Bins) -> Array:
    """One over the share of rows in each bin, 0 where it is empty: residual sums times this are gaps."""
    return np.divide(bins.n, bins.count, out=np.zeros_like(bins.count), where=bins.filled).ravel()


def per_root_share(bins: Bins) -> Array:
    """Residual sums times this, squared and added up, are squared gaps averaged over the bins by their size."""
    return np.sqrt(per_share(bins))


def _noisiest(noise: Array) -> Array:
    """The direction in which the draws spread most, by a few steps of the power method."""
    direction = np.sqrt((noise**2).sum(axis=0))
    for _ in range(20):
        direction = noise.T @ (noise @ direction)
        direction /= float(np.linalg.norm(direction)) or 1.0
    return np.asarray(direction)


def _turn(floor: Array) -> float:
    """The number of standard errors from 0 at which a gap's sign counts as known: 1 for up to 33 bins, more for many.

    Of many gaps of 0 some lie beyond any limit by chance, and their errors add up. The number of bins is the one that
    would make the noise floor as steady as it is, so unequal and dependent bins count for less.
    """
    spread = float(floor.var())
    bins = (np.pi / 2 - 1) * float(floor.mean()) ** 2 / spread if spread > 0 else 1.0
    return float(np.sqrt(max(2 * np.log(max(bins, 1.0) / 20), 1.0)))
