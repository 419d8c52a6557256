"""Two models on the same rows, or one on two sets of rows: the difference of a measure, with interval and test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.errors import InputError
from calibrant.core.json import plain
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.bootstrap import OnDone, basic_interval, check_confidence, draw, p_value
from calibrant.core.statistics.label_noise import ErrorPairs, LabelNoise
from calibrant.core.statistics.residual_noise import Spread, difference_draws
from calibrant.core.text import number_format as fmt
from calibrant.core.text.notebook import html_table
from calibrant.measures import ClassMeasure, Measure
from calibrant.measuring.confidence_limits import (
    affordable,
    check_resamples,
    half_width,
    in_parts,
    noise_of_labels,
    sampling,
    values_on_parts,
    why_no_interval,
)
from calibrant.measuring.matching_rows import MatchedBy, MatchedRows, match_rows, same_classes
from calibrant.measuring.measure import What, definition_of, resolve

OTHER = 1_000_003  # distance between the seeds of sets of rows that were drawn independently

Better = Literal["a", "b", "neither"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Difference of a measure, b minus a, with interval and test; of distances for a measure that is best at 0 or 1.

    The p-value is below 1 - confidence when the interval leaves out zero, up to the last resample. Where there are too
    few rows for an interval, `reason` says so, and the ends and the p-value are NaN (null in JSON).
    """

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    better: Better  # "neither": the rows are inconclusive
    n: int
    k: int
    definition: str
    paired: bool = True
    n_b: int | None = None  # rows of b, where they are other ones
    only_in_a: int = 0  # rows left out because b has none of their id
    only_in_b: int = 0
    reason: str | None = None  # why there is no interval
    matched_by: MatchedBy | None = None  # what pairs the rows; None where they are not paired

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = plain(self)
        return fields

    HEAD: ClassVar[tuple[str, ...]] = ("a", "b", "difference", "interval", "p", "better")

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of one row in a table of comparisons."""
        return (
            fmt.number(self.a),
            fmt.number(self.b),
            fmt.number(self.difference, sign=True),
            fmt.bracket(self.low, self.high, sign=True),
            fmt.p_value(self.p_value),
            "inconclusive" if self.better == "neither" else self.better,
        )

    def __bool__(self) -> bool:
        fix = 'ask for .better ("a", "b" or "neither"), or for .p_value'
        raise InputError("a comparison as true or false", expected="a question", got="two models", fix=fix)

    def _repr_html_(self) -> str:
        rows = "same rows" if self.paired else f"{self.n:,} and {self.n_b:,} rows"
        return html_table(f"{self.definition}; {rows}", ("measure", *self.HEAD), [(self.measure, *self.cells)])

    def __str__(self) -> str:
        return (
            f"{self.measure}: {' against '.join(fmt.apart([self.a, self.b], 4))}, difference "
            f"{fmt.number(self.difference, sign=True)} {fmt.bracket(self.low, self.high, sign=True)}, "
            f"{self.reason or fmt.chance(self.p_value)}"
        )


def compare(
    a: Predictions,
    b: Predictions,
    what: What = "ece",
    *,
    paired: bool = True,
    confidence: float = 0.95,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
) -> Comparison:
    """Compare a measure of two models on the same rows; `paired=False` compares it on different rows.

    Models on the same rows share their noise, so that what both find hard cancels. Rows are joined by their ids where
    both have ids, and rows that one of them lacks are left out and counted.

    >>> a = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]] * 4, labels=[0, 1, 1] * 4)
    >>> compare(a, a, "brier", resamples=50).difference
    0.0
    """
    check_confidence(confidence)
    check_resamples(resamples, least=1)
    chosen, name = resolve(what)
    same_classes(a, b)
    rows = match_rows(a, b) if paired else MatchedRows(a, b)
    a, b = rows.a, rows.b
    chosen.check_shape(a)
    reason = why_no_interval(chosen, a) or why_no_interval(chosen, b)
    difference = (
        UNKNOWN if reason else find_difference(chosen, a, b, (1 - confidence) / 2, resamples, seed, progress, paired)
    )
    comparison = compare_values(chosen, name, a, chosen(a), chosen(b), difference, confidence)
    return replace(
        comparison,
        paired=paired,
        n_b=None if paired else b.n,
        only_in_a=rows.only_in_a,
        only_in_b=rows.only_in_b,
        reason=reason,
        matched_by=rows.by if paired else None,
    )


@dataclass(frozen=True)
class Difference:
    """The interval and the test of b minus a."""

    low: float
    high: float
    p_value: float

    @classmethod
    def of_spreads(cls, a: Spread, b: Spread, tail: float) -> "Difference":
        """Build the difference of two calibration errors: each end takes the bias of both from the safe side."""
        difference, (lower, upper) = b.value - a.value, difference_draws(a, b)
        low, high = difference - np.quantile(lower, 1 - tail), difference - np.quantile(upper, tail)
        return cls(float(low), float(high), p_value(difference, difference + lower, difference + upper))

    @classmethod
    def of_labels(cls, models: Sequence[LabelNoise], tail: float) -> "Difference":
        """Build the difference of two class-wise errors on the same rows, with noise from the same drawn labels."""
        pairs = ErrorPairs.of(*models)
        return cls(*pairs.ends(tail), pairs.p_value)

    @classmethod
    def of_draws(cls, difference: float, draws: Array, tail: float) -> "Difference":
        """Build the difference by the basic bootstrap, from differences on the same resampled rows."""
        span = basic_interval(difference, draws, 1 - 2 * tail)
        return cls(span.low, span.high, p_value(difference, draws))

    @classmethod
    def of_parts(cls, difference: float, parts: Array, tail: float) -> "Difference":
        """Build the difference from the differences on many parts of very many rows."""
        from scipy.special import stdtr, stdtrit

        half = half_width(parts, tail)
        error, freedom = half_width(parts, 0.16), len(parts) - 1  # any tail would do: it cancels
        chance = 2 * stdtr(freedom, abs(difference) / error * stdtrit(freedom, 0.16)) if error > 0 else 1.0
        return cls(difference - half, difference + half, float(chance))

    @classmethod
    def of_distances(cls, difference: "Difference", total: "Difference") -> "Difference":
        """Build the difference |b| - |a| from b - a and b + a: zero if one of these is, so both must be significant.

        |b| - |a| is the smaller of |b - a| and |b + a|, with the sign of their product.
        """
        ends = [_smaller(d, t) for d in (difference.low, difference.high) for t in (total.low, total.high)]
        return cls(min(ends), max(ends), max(difference.p_value, total.p_value))


UNKNOWN = Difference(np.nan, np.nan, np.nan)


def compare_values(
    m: Measure, name: str, p: Predictions, a: float, b: float, spread: Difference, confidence: float
) -> Comparison:
    """The comparison of two values of a measure on the rows of p, given the interval and test of their difference."""
    ideal = m.ideal
    difference = b - a if ideal is None else abs(b - ideal) - abs(a - ideal)
    low, high, chance = min(spread.low, difference), max(spread.high, difference), spread.p_value
    if not np.isfinite(difference) or not np.isfinite(chance):
        low = high = chance = np.nan
    return Comparison(
        measure=name,
        a=a,
        b=b,
        difference=difference,
        low=low,
        high=high,
        p_value=chance,
        better=_better(m, a, b) if chance < 1 - confidence else "neither",
        n=p.n,
        k=p.k,
        definition=definition_of(m, p)
        + ("" if ideal is None else f"; the difference is that of the distances from {ideal:g}"),
    )


def find_difference(
    m: Measure,
    a: Predictions,
    b: Predictions,
    tail: float,
    resamples: int | None,
    seed: int,
    progress: OnDone | None,
    paired: bool,
) -> Difference:
    """The interval and the test of the difference; rows that are not paired were drawn independently."""
    seeds = (seed, seed) if paired else (seed, seed + OTHER)
    if paired and isinstance(m, ClassMeasure) and m.by_labels(a) and m.by_labels(b):
        return Difference.of_labels(noise_of_labels(m, seed, a, b), tail)
    if m.ideal is None:
        of_a = m.spread(a, sampling(a, seeds[0], paired=paired))
        of_b = None if of_a is None else m.spread(b, sampling(b, seeds[1], paired=paired))
        if of_a is not None and of_b is not None:
            return Difference.of_spreads(of_a, of_b, tail)
    values = m(a), m(b)
    if in_parts(m, a, resamples) and in_parts(m, b, resamples):
        parts = values_on_parts(m, a, seeds[0]), values_on_parts(m, b, seeds[1])
        return difference_of(m, *values, *parts, tail, Difference.of_parts)
    size = affordable(m, max(a.n, b.n)) if resamples is None else resamples

    def resample(counts: Ints) -> Array:
        return np.stack([m.resample(a, counts), m.resample(b, counts)], axis=1)

    def alone(p: Predictions, own_seed: int) -> Array:
        return draw(lambda counts: m.resample(p, counts), p.n, size, own_seed, progress, p.clusters)

    if paired:
        draws_a, draws_b = draw(resample, a.n, size, seed, progress, a.clusters).T
    else:
        draws_a, draws_b = alone(a, seeds[0]), alone(b, seeds[1])
    return difference_of(m, *values, draws_a, draws_b, tail)


def difference_of(
    m: Measure,
    a: float,
    b: float,
    draws_a: Array,
    draws_b: Array,
    tail: float,
    how: Callable[[float, Array, float], Difference] = Difference.of_draws,
) -> Difference:
    """Build the difference from values of a and b on the same resamples (or parts), or from distances to an ideal."""
    difference = how(b - a, draws_b - draws_a, tail)
    if m.ideal is None:
        return difference
    both = 2 * m.ideal
    return Difference.of_distances(difference, how(b + a - both, draws_b + draws_a - both, tail))


def _smaller(d: float, t: float) -> float:
    return float(np.sign(d) * np.sign(t) * min(abs(d), abs(t)))


def _better(chosen: Measure, a: float, b: float) -> Better:
    if chosen.direction == "none":
        return "neither"
    if chosen.ideal is not None:
        a, b = abs(a - chosen.ideal), abs(b - chosen.ideal)
    return "a" if (a < b) != (chosen.direction == "up") else "b"
