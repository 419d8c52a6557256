"""How rows were drawn, and the noise that drawing them gave to sums of their residuals."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Integers, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves.curve import BLOCK
from calibrant.core.curves.weighted import effective_rows
from calibrant.core.parallel import pieces
from calibrant.core.statistics.bootstrap import OnDone, resample_counts

if TYPE_CHECKING:
    from calibrant.core.predictions import Predictions

DRAWS = 1000  # of normal noise: they cost so little that nobody need choose
OTHER = 1_000_003  # distance between the seeds of sets of rows that were drawn independently
MANY_ROWS = 100_000  # from here on values on many parts tell the noise, or fewer resamples must do
PARTS = 100
WORK = 1000 * MANY_ROWS  # rows that resampling may touch
FEWEST = 100
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampling:
    """How rows were drawn, and what their noise is wanted for: everything but the confidence.

    Rows of one cluster (0, 1, ...) come together, so they share their noise. With `paired`, whatever is gathered from
    these rows shares its noise row by row: two models on the same rows. With `calibrated`, draws are what a calibrated
    model would show: residuals of whole clusters with random signs, around 0.

    >>> three = Sampling(n=3, draws=4)
    >>> values = three.gather(np.array([0, 1, 2]), np.array([0, 1, 1]), np.array([0.1, -0.4, 0.2]), 2)
    >>> values.value.round(4), values.noise.shape
    (array([ 0.0333, -0.0667]), (4, 2))
    """

    n: int
    draws: int = DRAWS  # of normal noise
    seed: int = 0
    weights: Array | None = None
    clusters: Integers | None = None
    resamples: int | None = None  # as many as a measure asks for, fewer of very many rows
    in_parts: bool = False  # so many rows that values on parts of them tell the noise
    paired: bool = False
    subtracted: bool = False  # from, or by, the estimate of another sampling: only draws or parts can be
    calibrated: bool = False
    largest: int = 0  # rows of the larger of two sets, which decides how many resamples are affordable
    known: Mapping[Any, Any] = field(default_factory=dict)  # estimates of measures made for subtraction on these rows
    progress: OnDone | None = None

    @classmethod
    def of(
        cls,
        p: "Predictions",
        *,
        seed: int = 0,
        resamples: int | None = None,
        paired: bool = False,
        subtracted: bool = False,
        progress: OnDone | None = None,
    ) -> "Sampling":
        """The sampling of one set of rows."""
        return cls(
            n=p.n,
            seed=seed,
            weights=p.weights,
            clusters=p.clusters,
            resamples=resamples,
            in_parts=_units(p.n, p.clusters) >= MANY_ROWS and resamples is None,
            paired=paired,
            subtracted=subtracted,
            largest=p.n,
            progress=progress,
        )

    @classmethod
    def pair(
        cls,
        a: "Predictions",
        b: "Predictions",
        *,
        paired: bool,
        seed: int = 0,
        resamples: int | None = None,
        progress: OnDone | None = None,
    ) -> tuple["Sampling", "Sampling"]:
        """Two sets to be subtracted: the same rows, whose noise is shared, or other rows, drawn independently.

        Paired rows have the clusters of a. Parts tell the noise only where both sets are large.
        """
        one, two = (
            cls.of(p, seed=own, resamples=resamples, paired=paired, subtracted=True, progress=progress)
            for p, own in ((a, seed), (b, seed if paired else seed + OTHER))
        )
        both, largest = one.in_parts and two.in_parts, max(a.n, b.n)
        two = replace(two, clusters=one.clusters, progress=None) if paired else two
        return replace(one, in_parts=both, largest=largest), replace(two, in_parts=both, largest=largest)

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
        units = self.units
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
    def freedom(self) -> float:
        """Degrees of freedom of a standard error: independent rows less one, or clusters by Kish's count, by weight."""
        if self.clusters is None:
            return max(int(effective_rows(self.weights, self.n)) - 1, 1)
        sizes = np.bincount(self.clusters, self.weights).astype(np.float64)
        return max(float(sizes.sum() ** 2 / (sizes**2).sum()) - 1, 1.0)

    def error(self, influence: Array) -> float:
        """Standard error of a value from the influence of each row."""
        units = float(int(effective_rows(self.weights, self.n)))
        if self.clusters is not None:
            influence = np.bincount(self.clusters, influence).astype(np.float64)
            units = float(len(influence))
        return float(np.sqrt((influence**2).sum() * units / max(units - 1, 1)))

    # -- resampled rows, and parts of rows --------------------------------------------------------

    @property
    def units(self) -> int:
        """The number of rows, or of clusters, which are drawn independently."""
        return _units(self.n, self.clusters)

    def affordable(self, wanted: int) -> int:
        """The number of resamples: that asked for, or as many as a measure wants, fewer of very many rows."""
        return affordable(wanted, self.largest or self.n) if self.resamples is None else self.resamples

    def resample(self, of: Callable[[Ints], Array], wanted: int) -> Array:
        """The values of a function of counts (b, n) of the rows, on every resample."""
        return self._on_counts(of, self.n, wanted, self.clusters)

    def resample_means(self, rows: Array, wanted: int) -> Array:
        """The weighted means of one number per row on every resample; of clusters, from one sum for each of them."""
        if self.clusters is None:
            return self.resample(
                lambda counts: _means(counts if self.weights is None else counts * self.weights, rows), wanted
            )
        above = np.bincount(self.clusters, rows if self.weights is None else self.weights * rows)
        below = np.bincount(self.clusters, self.weights)
        return self._on_counts(lambda counts: counts @ above / (counts @ below), len(below), wanted, None)

    def _on_counts(self, of: Callable[[Ints], Array], n: int, wanted: int, clusters: Integers | None) -> Array:
        values = []
        for counts in resample_counts(n, self.affordable(wanted), self.seed, clusters):
            values.append(of(counts))
            self.step(len(counts))
        return np.concatenate(values)

    @cached_property
    def part_of(self) -> npt.NDArray[np.int16]:
        """The random part of the rows that each row belongs to; the same parts for the same seed."""
        part_of = np.empty(self.units, dtype=np.int16)
        for i, part in enumerate(np.array_split(np.random.default_rng(self.seed).permutation(self.units), PARTS)):
            part_of[part] = i
        return part_of if self.clusters is None else part_of[self.clusters]

    def means_of_parts(self, rows: Array) -> Array:
        """The weighted means of one number per row over each part of the rows."""
        weights, part_of = self.weights, self.part_of
        above = np.bincount(part_of, rows if weights is None else weights * rows, PARTS)
        return np.asarray(above / np.bincount(part_of, weights, PARTS))

    def step(self, steps: int) -> None:
        """Report steps done."""
        if self.progress:
            self.progress(steps)

    @cached_property
    def _weights(self) -> Array:
        return np.ones(self.n) if self.weights is None else np.asarray(self.weights, dtype=np.float64)

    def _affordable(self, bins: int) -> int:
        return min(self.draws, max(DRAW_ELEMENTS // max(bins, 1), 100))


def affordable(wanted: int, n: int) -> int:
    """The number of resamples of n rows: as many as are wanted, fewer of very many rows."""
    return max(min(wanted, WORK // n), min(wanted, FEWEST))


def _units(n: int, clusters: Integers | None) -> int:
    return n if clusters is None else int(clusters.max()) + 1


def _means(weights: Array | Ints, rows: Array) -> Array:
    return np.asarray(weights @ rows / weights.sum(axis=1))


@lru_cache(maxsize=1)
def _random_groups(seed: int, units: int, groups: int, draws: int, signs: bool) -> tuple[npt.NDArray[np.int16], Array]:
    """Group of each unit (at most 1,000) and weight of each group in each draw, kept for the next measure."""
    rng = np.random.default_rng(seed)
    group = (rng.permutation(units) % groups).astype(np.int16)
    weights = rng.choice([-1.0, 1.0], (draws, groups)) if signs else rng.standard_normal((draws, groups))
    return group, weights
