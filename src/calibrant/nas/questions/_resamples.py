"""Numbers of many networks, with the same numbers of resamples of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves.ranking import kendall
from calibrant.core.statistics.bootstrap import resample_counts
from calibrant.core.statistics.estimate import Draws, Estimate

Statistic = Callable[..., float | np.floating[Any]]

FEW = 20  # networks below which no interval is given


@dataclass(frozen=True)
class NetworkResamples:
    """Columns of finite numbers over n networks; resamples hold at most `most` of them.

    Of a larger population a random part is resampled, and the deviations shrink with the square root of its share.

    >>> r = NetworkResamples({"a": np.arange(30.0), "b": np.arange(30.0) ** 2}, n=30, resamples=50)
    >>> r.tau("a", "b").limits()
    (1.0, 1.0)
    """

    columns: Mapping[str, Array]
    n: int
    resamples: int = 200
    most: int = 500
    seed: int = 0

    def tau(self, a: str, b: str) -> Estimate:
        """Kendall's tau-b of two columns."""
        columns = (self.columns[a], self.columns[b])
        return self._estimate(kendall, columns, lambda: tau_draws(self._pairs(a), self._pairs(b), self._counts))

    def median(self, a: str) -> Estimate:
        return self.statistic(np.median, a)

    def statistic(self, of: Statistic, *names: str) -> Estimate:
        """The estimate of any function of columns."""
        columns = [self.columns[name] for name in names]

        def draws() -> Array:
            chosen = (np.repeat(self._part, count) for count in self._counts)
            return np.array([float(of(*(column[rows] for column in columns))) for rows in chosen])

        return self._estimate(of, columns, draws)

    def value_of_tau(self, a: str, b: str) -> Estimate:
        """Kendall's tau-b without resamples: where networks are no independent draws."""
        return Estimate(value=kendall(self.columns[a], self.columns[b]))

    def value_of_median(self, a: str) -> Estimate:
        return Estimate(value=float(np.median(self.columns[a])) if self.n else float("nan"))

    def _estimate(self, of: Statistic, columns: Sequence[Array], draws: Callable[[], Array]) -> Estimate:
        value = float(of(*columns)) if self.n else float("nan")
        if self.n < FEW or not np.isfinite(value):
            return Estimate(value=value)
        if self.n == len(self._part):
            return Estimate(value=value, noise=Draws.from_resamples(value, draws()))
        centre = float(of(*(column[self._part] for column in columns)))
        shrunk = (draws() - centre) * np.sqrt(len(self._part) / self.n)
        return Estimate(value=value, noise=Draws(lower=shrunk, upper=shrunk, method="basic bootstrap"))

    def _pairs(self, a: str) -> "Pairs":
        if a not in self._compared:
            self._compared[a] = Pairs.of(self.columns[a][self._part], self._counts)
        return self._compared[a]

    @cached_property
    def _compared(self) -> dict[str, "Pairs"]:
        return {}

    @cached_property
    def _part(self) -> Ints:
        if self.n <= self.most:
            return np.arange(self.n)
        return np.sort(np.random.default_rng(self.seed).choice(self.n, self.most, replace=False))

    @cached_property
    def _counts(self) -> Ints:
        return np.concatenate(list(resample_counts(len(self._part), self.resamples, self.seed)))  # (resamples, n)


@dataclass(frozen=True)
class Pairs:
    """Every pair of values of a column compared, and how many pairs of each resample are not tied."""

    signs: npt.NDArray[np.float32]  # (n, n)
    untied: Array  # (resamples,)

    @classmethod
    def of(cls, values: Array, counts: Ints) -> "Pairs":
        places = np.unique(values, return_inverse=True)[1].astype(np.float32)
        signs = np.sign(places[:, None] - places[None, :])
        if places.max(initial=0) == len(values) - 1:  # no ties but copies of one network
            return cls(signs, counts.sum(axis=1) ** 2.0 - (counts.astype(np.float64) ** 2).sum(axis=1))
        return cls(signs, _sum_counts(signs**2, counts))


def tau_draws(x: Pairs, y: Pairs, counts: Ints) -> Array:
    """Kendall's tau-b of resamples: every pair is compared once and counted as often as a resample holds it.

    >>> counts = np.array([[1, 1, 1], [1, 2, 0]])
    >>> x, y = (Pairs.of(np.array(v), counts) for v in ([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]))
    >>> tau_draws(x, y, counts).round(3).tolist()
    [0.333, 1.0]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(_sum_counts(x.signs * y.signs, counts) / np.sqrt(x.untied * y.untied))


def _sum_counts(pairs: npt.NDArray[np.float32], counts: Ints) -> Array:
    w = counts.astype(np.float32)  # sums of whole numbers below 2 ** 24: exact
    return np.asarray(((w @ pairs) * w).sum(axis=1, dtype=np.float64))
