"""A number with its noise: the one value from which intervals, bounds and p-values are made.

An `Estimate` has one kind of noise of a closed family. Only this file, `measuring/estimating.py` and the families of
measures name a kind, and nobody else reads its arrays.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.cached_property import cached_property

ROUNDING = 1e-12  # of a value: intervals no wider than that have no width
TIE = 1e-12  # of draws: so near to 0 they count as 0, whatever rounding made of them
TINY = 1e-15  # a standard error of 0, but for rounding
MOST_LOG = 700.0  # half an interval of logarithms: beyond, an end is no number
Side = Literal["low", "high"]


@dataclass(frozen=True)
class Interval:
    """Two ends, each of which misses the true value with the chance asked for."""

    low: float
    high: float


# -- kinds of noise -------------------------------------------------------------------------------


class Noise(ABC):
    """The noise of a value: ends of its intervals and, of a difference, the p-value of 0."""

    @property
    @abstractmethod
    def method(self) -> str:
        """How intervals are computed."""

    @abstractmethod
    def ends(self, value: float, tail: float) -> Interval:
        """The ends, each of which the true value is beyond with a chance of `tail`."""

    def p_value(self, value: float) -> float:
        """The two-sided p-value of a true value of 0."""
        raise TypeError(f"{type(self).__name__} is the noise of a value, not of a difference")


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws(Noise):
    """Draws of what must be subtracted from a value to give what the truth may be.

    Noise biases an error that cannot be below 0, by an amount that nobody can know. Then each end has draws from the
    side that is safe for it: `lower` as if gaps near 0 were 0, `upper` as if no gap changed its sign. `null` is the
    error that noise alone would show: where that reaches the value, the lower end is 0.
    """

    lower: Array  # (draws,)
    upper: Array
    method: str = ""
    null: Callable[[], Array] | None = None
    centre: float | None = None  # what the draws are about, where that is not the value itself
    test: Literal["count", "normal", "jumps"] = "count"  # p-values: by counting draws, or normal; see `p_value`
    freedom: float = np.inf  # of Student's distribution: few clusters make the spread of the draws itself uncertain

    @classmethod
    def from_resamples(
        cls,
        value: float,
        resampled: Array,
        method: str = "basic bootstrap",
        null: Callable[[], Array] | None = None,
        freedom: float = np.inf,
    ) -> "Draws":
        """The basic bootstrap: what resampling did to the value, sampling did to the truth.

        >>> noise = Draws.from_resamples(0.5, np.array([0.4, 0.5, 0.6, 0.7]))
        >>> Estimate(value=0.5, noise=noise).interval(0.5)
        Interval(low=0.375, high=0.525)
        """
        noise = resampled - value
        return cls(lower=noise, upper=noise, method=method, null=null, freedom=freedom)

    def ends(self, value: float, tail: float) -> Interval:
        centre = value if self.centre is None else self.centre
        wider = 1.0 if np.isinf(self.freedom) else _student(self.freedom, tail) / _student(np.inf, tail)
        low = centre - wider * quantile(self.lower, 1 - tail)
        if low > 0 and self.null is not None and np.mean(self.null() >= centre) > tail:
            low = 0.0
        return Interval(low, centre - wider * quantile(self.upper, tail))

    def p_value(self, value: float) -> float:
        """By counting the draws that leave the value on the other side of 0; exact ties count as if they did.

        Board measures have normal p-values from the bias and the standard deviation of the draws. One that `jumps` is
        significant only if every resample agrees.
        """
        centre = value if self.centre is None else self.centre
        if self.test == "count":
            low, high = (centre - noise[np.isfinite(noise)] for noise in (self.lower, self.upper))
            below = (1 + np.count_nonzero(low <= TIE)) / (len(low) + 1)
            above = (1 + np.count_nonzero(high >= -TIE)) / (len(high) + 1)
            return _widen_p_value(float(min(1.0, 2 * min(below, above))), self.freedom)
        side = self.lower if centre > 0 else self.upper
        agree = (centre - side) * np.sign(centre) > 0
        if self.test == "jumps" and not agree.all():
            return min(1.0, 2 * (1 + float(np.count_nonzero(~agree))) / (1 + len(side)))
        error, distance = float(side.std()), max((centre - float(side.mean())) * np.sign(centre), 0.0)
        return min(1.0, 2 * _normal_cdf(-distance / error)) if error > TINY else float(distance == 0)

    def equals(self, other: "Draws") -> bool:
        """Whether the draws are the same, one by one."""
        return np.array_equal(self.lower, other.lower, equal_nan=True) and np.array_equal(
            self.upper, other.upper, equal_nan=True
        )

    def at(self, value: float) -> "Draws":
        """The same noise around a value that is known more exactly."""
        return replace(self, centre=value)

    def square(self) -> "Draws":
        """The noise of the square of the value."""
        assert self.centre is not None
        centre, null = self.centre, self.null

        def squared(draws: Array) -> Array:
            return np.asarray(centre**2 - np.maximum(centre - draws, 0.0) ** 2)

        floor = None if null is None else (lambda: np.asarray(null() ** 2))
        return replace(self, lower=squared(self.lower), upper=squared(self.upper), null=floor, centre=centre**2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts(Noise):
    """Values on many random parts of very many rows: their mean has Student's distribution."""

    values: Array  # (parts,)

    @property
    def method(self) -> str:
        return f"spread over {len(self.values)} random parts of the rows"

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return float(np.nanstd(self.values, ddof=1) / np.sqrt(len(self.values)))

    def ends(self, value: float, tail: float) -> Interval:
        half = -_student(len(self.values) - 1, tail) * self.error
        return Interval(value - half, value + half)

    def p_value(self, value: float) -> float:
        return _student_p_value(value, self.error, len(self.values) - 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Normal(Noise):
    """A standard error, with Student's distribution where its freedom is finite, on the scale of the link.

    Skewness (of the mean) moves both ends towards the long tail of the rows, of which a sample shows too little: by
    (1 + 2 z^2) / 6 times the skewness, in standard errors (Johnson, JASA 1978).
    """

    error: float  # of link(value)
    freedom: float = np.inf
    link: Literal["identity", "log", "logit"] = "identity"
    skewness: float = 0.0
    centre: float | None = None  # link(value), where that is not finite
    method: str = "normal"

    def ends(self, value: float, tail: float) -> Interval:
        z = -_student(self.freedom, tail)
        shift = self.skewness * (1 + 2 * z * z) / 6
        if self.link == "log":
            factor = float(np.exp(min(z * self.error, MOST_LOG))) if np.isfinite(self.error) else np.inf
            return Interval(value / factor, value * factor)
        if self.link == "logit":
            from scipy.special import expit, logit

            centre = float(logit(value)) if self.centre is None else self.centre
            return Interval(float(expit(centre - z * self.error)), float(expit(centre + z * self.error)))
        return Interval(value + self.error * (shift - z), value + self.error * (shift + z))

    def p_value(self, value: float) -> float:
        return _student_p_value(value, self.error, self.freedom)


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels(Noise):
    """The mean of rows that take few values, such as costs; values that no row happened to show count.

    The mean is the sum of the values times the share of rows with each. Every share has the interval of Clopper and
    Pearson, with the effective number of rows where they have weights or come in clusters (Korn, Graubard, Survey
    Methodology 1998), and the ends are put together by their distances from the shares (MOVER: Zou, Donner, Statistics
    in Medicine 2008). A normal interval is too narrow where a cost rests on a handful of rows, and has no width where
    the dear outcome was not seen at all.
    """

    values: Array  # (levels,), ascending
    shares: Array  # of rows at each level
    counts: Array  # of independent rows that would give each share the same variance
    unseen: tuple[float, float]  # least and largest value that no row took but could; else the most frequent one
    rows: float  # independent rows, or clusters
    clusters: int | None = None  # their number: few make the variance itself uncertain
    method: str = "Clopper and Pearson by level, joined by MOVER"

    def ends(self, value: float, tail: float) -> Interval:
        from calibrant.core.statistics.shares import clopper_pearson

        usual, worth = int(self.shares.argmax()), self._worth(tail)
        others = np.arange(len(self.values)) != usual
        cost = np.append(self.values[others], self.unseen) - self.values[usual]
        share = np.append(self.shares[others], [0.0, 0.0])
        count = worth * np.append(self.counts[others], [self.rows, self.rows])
        below, above = clopper_pearson(share, count, 1 - 2 * tail)
        low, high = cost * below, cost * above
        apart = np.sqrt(share / (1 - share))
        together = -np.outer(apart, apart) * np.outer(np.sign(cost), np.sign(cost))  # shares crowd each other out
        np.fill_diagonal(together, 1.0)

        def half(distance: Array) -> float:
            return float(np.sqrt(max(distance @ together @ distance, 0.0)))

        down, up = cost * share - np.minimum(low, high), np.maximum(low, high) - cost * share
        return Interval(value - half(down), value + half(up))

    def _worth(self, tail: float) -> float:
        """The factor by which few clusters reduce the number of rows: their variance is itself an estimate."""
        if self.clusters is None:
            return 1.0
        return float((_student(np.inf, tail) / _student(max(self.clusters - 1, 1), tail)) ** 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class Inverted(Noise):
    """Pairs of true errors of two models, and how well each explains the values observed.

    The bias of a value depends on the true error, which is unknown: the chance of the observed difference is taken for
    every pair of errors that could have shown the two values (Berger and Boos 1994), and the largest counts.
    """

    a: Array  # (errors,)
    b: Array  # (errors,)
    chance: Array  # (a, b), two-sided
    least: float  # the chance where no pair of equal errors could have shown the values
    method: str = "inversion over pairs of true errors"

    def ends(self, value: float, tail: float) -> Interval:
        differences = (self.b[None, :] - self.a[:, None])[self.chance > 2 * tail]
        return Interval(float(differences.min(initial=np.inf)), float(differences.max(initial=-np.inf)))

    def p_value(self, value: float) -> float:
        same = self.a[:, None] == self.b[None, :]
        return float(self.chance[same].max()) if same.any() else self.least


@dataclass(frozen=True, kw_only=True, eq=False)
class Widest(Noise):
    """The wider of two kinds of noise at each end; the second is asked where the first ends above a floor."""

    first: Noise
    second: Callable[[], Noise]
    above: float = -np.inf

    @property
    def method(self) -> str:
        return self.first.method

    def ends(self, value: float, tail: float) -> Interval:
        first = self.first.ends(value, tail)
        if first.low <= self.above:
            return first
        second = self._second.ends(value, tail)
        return Interval(min(first.low, second.low), max(first.high, second.high))

    @cached_property
    def _second(self) -> Noise:
        return self.second()


@dataclass(frozen=True, kw_only=True, eq=False)
class Widened(Noise):
    """Noise widened by outcomes that the rows do not have: values that could be seen, by the chance of a tail."""

    noise: Noise
    unseen: Callable[[float], Sequence[float]]

    @property
    def method(self) -> str:
        return f"{self.noise.method}; widened by outcomes that these rows do not have"

    def ends(self, value: float, tail: float) -> Interval:
        ends, values = self.noise.ends(value, tail), self.unseen(tail)
        return Interval(float(min([ends.low, *values])), float(max([ends.high, *values])))


@dataclass(frozen=True, kw_only=True, eq=False)
class Distances(Noise):
    """The difference of distances |b| - |a|, from b - a and b + a: zero if one of these is.

    |b| - |a| is the smaller of |b - a| and |b + a|, with the sign of their product; both must be significant.
    """

    difference: "Estimate"
    total: "Estimate"

    @property
    def method(self) -> str:
        return "" if self.difference.noise is None else self.difference.noise.method

    def ends(self, value: float, tail: float) -> Interval:
        confidence = 1 - 2 * tail
        ends = [
            float(np.sign(d) * np.sign(t) * min(abs(d), abs(t)))
            for d in self.difference.limits(confidence)
            for t in self.total.limits(confidence)
        ]
        return Interval(min(ends), max(ends))

    def p_value(self, value: float) -> float:
        return max(self.difference.p_value(), self.total.p_value())


# -- the value ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A number with its noise, or with the reason why there is no interval. It is neither saved nor pickled.

    >>> e = Estimate(value=0.5, noise=Normal(error=0.1), bounds=(0.0, 0.6))
    >>> e.interval().high, round(e.bound("low", 0.975), 3), round(e.p_value(), 7)
    (0.6, 0.304, 6e-07)
    """

    value: float
    noise: Noise | None = None
    reason: str | None = None  # why there is no interval
    bounds: tuple[float, float] = (-np.inf, np.inf)
    margin: float | None = None  # what sums do not know of rows: it widens both ends
    terms: tuple[float, ...] = ()  # the values that a combination is made of
    no_width: str | None = None  # why an interval without width is none; None where it is an answer
    _ends: dict[float, Interval | None] = field(default_factory=dict, repr=False, init=False)

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """The interval that holds the value, inside the bounds; None where there is none."""
        return self.ends((1 - confidence) / 2)

    def limits(self, confidence: float = 0.95) -> tuple[float, float]:
        """The two ends of the interval; NaN where there is none."""
        ends = self.interval(confidence)
        return (np.nan, np.nan) if ends is None else (ends.low, ends.high)

    def bound(self, side: Side, confidence: float = 0.95) -> float | None:
        """The value that the truth is above ("low") or below ("high") with this confidence."""
        ends = self.ends(1 - confidence)
        return None if ends is None else ends.low if side == "low" else ends.high

    def ends(self, tail: float) -> Interval | None:
        """The interval that misses the truth on each side with a chance of `tail`."""
        if tail not in self._ends:
            self._ends[tail] = self._compute_ends(tail)
        return self._ends[tail]

    def p_value(self) -> float:
        """The two-sided p-value of a true value of 0, for differences; NaN where there is none.

        What sums do not know of rows may be all of the value, or a part of it.
        """
        if self.noise is None:
            return float("nan")
        margin = self.margin or 0.0
        if 0 < abs(self.value) <= margin:
            return 1.0
        return self.noise.p_value(self.value - margin * float(np.sign(self.value)))

    @property
    def method(self) -> str | None:
        """How intervals are computed."""
        return None if self.noise is None else self.noise.method

    def why_none(self, confidence: float = 0.95) -> str | None:
        """Why there is no interval; None where there is one."""
        return self.reason or (self.no_width if self.interval(confidence) is None else None)

    def _compute_ends(self, tail: float) -> Interval | None:
        if self.noise is None:
            return None
        ends = self.noise.ends(self.value, tail)
        margin = self.margin or 0.0
        low, high = np.clip((ends.low - margin, ends.high + margin), *self.bounds)
        low, high = float(min(low, self.value)), float(max(high, self.value))
        if self.no_width is not None and high - low <= ROUNDING * abs(self.value):
            return None
        return Interval(low, high)


def combine(estimates: Sequence[Estimate], weights: Array) -> Estimate:
    """The weighted sum of values whose draws belong together; each end takes the side that is safe.

    >>> def estimate(value, *draws):
    ...     return Estimate(value=value, noise=Draws(lower=np.array(draws), upper=np.array(draws)))
    >>> difference = combine([estimate(1.0, 0.1, 0.2), estimate(3.0, 0.1, 0.3)], np.array([-1.0, 1.0]))
    >>> difference.value, difference.noise.lower.round(3).tolist()
    (2.0, [0.0, 0.1])
    """
    chosen = [e for e, weight in zip(estimates, weights, strict=True) if weight]
    w = weights[np.flatnonzero(weights)]
    terms = tuple(e.value for e in chosen)
    value, noises = float(w @ terms), [e.noise for e in chosen]
    if any(noise is None for noise in noises):
        return Estimate(value=value, terms=terms, reason=next((e.reason for e in chosen if e.reason), None))
    if all(isinstance(noise, Parts) for noise in noises):
        parts = np.stack([noise.values for noise in noises if isinstance(noise, Parts)], axis=1)
        return Estimate(value=value, terms=terms, noise=Parts(values=parts @ w))
    lower, upper, jumps = stack_draws(chosen)
    draws = [noise for noise in noises if isinstance(noise, Draws)]
    centre = None
    if any(d.centre is not None for d in draws):
        centre = float(w @ [e.value if d.centre is None else d.centre for e, d in zip(chosen, draws, strict=True)])
    plus, minus = np.maximum(w, 0.0), np.minimum(w, 0.0)
    noise = Draws(
        lower=lower @ plus + upper @ minus,
        upper=upper @ plus + lower @ minus,
        centre=centre,
        test="jumps" if jumps else draws[0].test,
        method=draws[0].method,
        freedom=min(d.freedom for d in draws),
    )
    margin = float(np.abs(w) @ [e.margin or 0.0 for e in chosen]) or None
    return Estimate(value=value, terms=terms, noise=noise, margin=margin)


def compute_from(of: Callable[..., Array | float], *estimates: Estimate) -> Estimate:
    """Any function of values that were computed on the same resamples.

    >>> one, two = (Estimate(value=v, noise=Draws.from_resamples(v, np.array([v, 2 * v]))) for v in (1.0, 4.0))
    >>> compute_from(lambda a, b: b / a, one, two).interval()
    Interval(low=4.0, high=4.0)
    """
    value = float(of(*(e.value for e in estimates)))
    if any(e.noise is None for e in estimates):
        return Estimate(value=value)
    lower, _, _ = stack_draws(estimates)
    resampled = of(*(e.value + draws for e, draws in zip(estimates, lower.T, strict=True)))
    return Estimate(value=value, noise=Draws.from_resamples(value, np.asarray(resampled)))


def stack_draws(estimates: Sequence[Estimate]) -> tuple[Array, Array, bool]:
    """Draws for lower and upper ends of values whose draws belong together, (draws, values), and whether any jumps."""
    draws = [e.noise for e in estimates if isinstance(e.noise, Draws)]
    assert len(draws) == len(estimates), "only draws of one sampling can be stacked"
    lower, upper = (np.stack([getattr(d, side) for d in draws], axis=1) for side in ("lower", "upper"))
    return lower, upper, any(d.test == "jumps" for d in draws)


def subtract(a: Estimate, b: Estimate, ideal: float | None = None) -> Estimate:
    """The difference b - a of estimates made for that, or the difference of their distances from an ideal.

    Values with the same draws are one number, which differs from itself by 0.
    """
    if isinstance(a.noise, Draws) and isinstance(b.noise, Draws) and a.value == b.value and a.noise.equals(b.noise):
        return Estimate(value=0.0, terms=(a.value, b.value), noise=Draws(lower=np.zeros(1), upper=np.zeros(1)))
    difference = combine([a, b], np.array([-1.0, 1.0]))
    if ideal is None or difference.noise is None:
        return difference
    total = combine([a, b], np.array([1.0, 1.0]))
    total = replace(total, value=total.value - 2 * ideal)
    value = abs(b.value - ideal) - abs(a.value - ideal)
    return replace(difference, value=value, noise=Distances(difference=difference, total=total))


def quantile(draws: Array, share: float) -> float:
    """The quantile of the draws that are defined; NaN where none is."""
    finite = draws[np.isfinite(draws)]
    return float(np.quantile(finite, share)) if len(finite) else float("nan")


def _student(freedom: float, share: float) -> float:
    if np.isinf(freedom):
        return NormalDist().inv_cdf(share)  # without scipy, which a small file need not wait for
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def _widen_p_value(p: float, freedom: float) -> float:
    """The p-value of the same distance in standard errors by Student's distribution in place of the normal one."""
    return p if np.isinf(freedom) or p >= 1 else _student_p_value(NormalDist().inv_cdf(p / 2), 1.0, freedom)


def _student_p_value(value: float, error: float, freedom: float) -> float:
    if not error > 0:
        return 1.0 if value == 0 else 0.0
    at = -abs(value) / error
    if np.isinf(freedom):
        return 2 * _normal_cdf(at)
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, at))


def _normal_cdf(x: float) -> float:
    return NormalDist().cdf(x)
