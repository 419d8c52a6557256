"""Two models on the same rows, or one on two sets of rows: the difference of a measure, with interval and test."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant.core import wording
from calibrant.core.arrays import Array, Ints
from calibrant.core.errors import InputError
from calibrant.core.intervals import OnDone, basic_interval, check_confidence, draw, p_value
from calibrant.core.noise import Spread, difference_draws
from calibrant.core.notebook import html_table
from calibrant.core.plain import plain
from calibrant.core.predictions import Predictions
from calibrant.core.shapes import shape_words
from calibrant.measures import Measure
from calibrant.measuring.limits import affordable, check_resamples, half_width, in_parts, sampling, values_on_parts
from calibrant.measuring.measure import What, definition_of, resolve

OTHER = 1_000_003  # seeds of rows that were drawn independently are so far apart


@dataclass(frozen=True)
class Comparison:
    """b minus a. The p-value is below 1 - confidence when the interval leaves out zero, up to the last resample."""

    measure: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    better: str  # "a", "b" or "neither": what the data show
    n: int
    k: int
    definition: str
    paired: bool = True
    n_b: int | None = None  # rows of b, where they are other ones

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = plain(self)
        return made

    HEAD: ClassVar[tuple[str, ...]] = ("a", "b", "difference", "interval", "p", "better")

    @property
    def cells(self) -> tuple[str, ...]:
        """Of a table of several."""
        better = {"neither": "cannot tell"}.get(self.better, self.better)
        ends = wording.bracket(self.low, self.high, sign=True)
        numbers = (wording.number(self.a), wording.number(self.b), wording.number(self.difference, sign=True), ends)
        return *numbers, wording.p_value(self.p_value), better

    def _repr_html_(self) -> str:
        rows = "same rows" if self.paired else f"{self.n:,} and {self.n_b:,} rows"
        return html_table(f"{self.definition}; {rows}", ("measure", *self.HEAD), [(self.measure, *self.cells)])

    def __str__(self) -> str:
        return (
            f"{self.measure}: {' against '.join(wording.apart([self.a, self.b], 4))}, difference "
            f"{wording.number(self.difference, sign=True)} {wording.bracket(self.low, self.high, sign=True)}, "
            f"{wording.chance(self.p_value)}"
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
    """Both share the noise of their rows, so that what both find hard cancels. `paired=False` is for different rows.

    >>> a = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], labels=[0, 1, 1])
    >>> compare(a, a, "brier", resamples=50).difference
    0.0
    """
    check_confidence(confidence)
    check_resamples(resamples, least=1)
    chosen, name = resolve(what)
    if paired:
        b = same_rows(a, b)
    else:
        same_kind(a, b)
    chosen.check_shape(a)
    values, tail = (chosen(a), chosen(b)), (1 - confidence) / 2
    find = _find_difference if paired else find_unpaired
    made = compared(chosen, name, a, *values, find(chosen, a, b, tail, resamples, seed, progress), confidence)
    return made if paired else replace(made, paired=False, n_b=b.n)


@dataclass(frozen=True)
class Difference:
    """The interval and the test of b minus a."""

    low: float
    high: float
    p_value: float

    @classmethod
    def of_spreads(cls, a: Spread, b: Spread, tail: float) -> "Difference":
        """Of two calibration errors: each end takes the bias of both from the side that is safe."""
        difference, (lower, upper) = b.value - a.value, difference_draws(a, b)
        low, high = difference - np.quantile(lower, 1 - tail), difference - np.quantile(upper, tail)
        return cls(float(low), float(high), p_value(difference, difference + lower, difference + upper))

    @classmethod
    def of_draws(cls, difference: float, draws: Array, tail: float) -> "Difference":
        """By the basic bootstrap, from differences on the same resampled rows."""
        span = basic_interval(difference, draws, 1 - 2 * tail)
        return cls(span.low, span.high, p_value(difference, draws))

    @classmethod
    def of_parts(cls, difference: float, parts: Array, tail: float) -> "Difference":
        """By the differences on many parts of very many rows."""
        from scipy.stats import t

        half = half_width(parts, tail)
        error = half_width(parts, 0.16)  # any tail would do: it cancels
        chance = 2 * t.sf(abs(difference) / error * t.isf(0.16, len(parts) - 1), len(parts) - 1) if error > 0 else 1.0
        return cls(difference - half, difference + half, float(chance))


def compared(
    m: Measure, name: str, p: Predictions, a: float, b: float, found: Difference, confidence: float
) -> Comparison:
    """What the values of two models on the rows of p, and the difference found, come to."""
    difference = b - a
    low, high, chance = min(found.low, difference), max(found.high, difference), found.p_value
    if not np.isfinite(difference):
        low = high = chance = np.nan
    better = _better(m, a, b) if chance < 1 - confidence else "neither"
    return Comparison(name, a, b, difference, low, high, chance, better, p.n, p.k, definition_of(m, p))


def _find_difference(
    m: Measure,
    a: Predictions,
    b: Predictions,
    tail: float,
    resamples: int | None,
    seed: int,
    progress: OnDone | None,
) -> Difference:
    rows = sampling(a, seed, paired=True)
    of_a = m.spread(a, rows)
    of_b = None if of_a is None else m.spread(b, rows)
    if of_a is not None and of_b is not None:
        return Difference.of_spreads(of_a, of_b, tail)
    if in_parts(m, a, resamples):
        return Difference.of_parts(m(b) - m(a), values_on_parts(m, b, seed) - values_on_parts(m, a, seed), tail)
    size = affordable(m, a.n) if resamples is None else resamples

    def resampled(counts: Ints) -> Array:
        return m.resampled(b, counts) - m.resampled(a, counts)

    draws = draw(resampled, a.n, size, seed, progress, a.clusters)
    return Difference.of_draws(m(b) - m(a), draws, tail)


def find_unpaired(
    m: Measure,
    a: Predictions,
    b: Predictions,
    tail: float,
    resamples: int | None,
    seed: int,
    progress: OnDone | None,
) -> Difference:
    """Rows of a and of b were drawn independently, so their noise is too."""
    seeds = seed, seed + OTHER
    of_a = m.spread(a, sampling(a, seeds[0]))
    of_b = None if of_a is None else m.spread(b, sampling(b, seeds[1]))
    if of_a is not None and of_b is not None:
        return Difference.of_spreads(of_a, of_b, tail)
    if in_parts(m, a, resamples) and in_parts(m, b, resamples):
        parts = values_on_parts(m, b, seeds[1]) - values_on_parts(m, a, seeds[0])
        return Difference.of_parts(m(b) - m(a), parts, tail)
    size = affordable(m, max(a.n, b.n)) if resamples is None else resamples

    def drawn(p: Predictions, own: int) -> Array:
        return draw(lambda counts: m.resampled(p, counts), p.n, size, own, progress, p.clusters)

    return Difference.of_draws(m(b) - m(a), drawn(b, seeds[1]) - drawn(a, seeds[0]), tail)


def same_kind(a: Predictions, b: Predictions) -> None:
    """Refuse predictions that say different things."""
    if a.shape != b.shape:
        got = f"{shape_words(a.shape)} and {shape_words(b.shape)}"
        raise InputError("compare", expected="predictions of one shape", got=got, fix="read both in the same way")
    if a.k != b.k and a.shape != "choices":
        fix = "compare predictions about the same classes"
        raise InputError("compare", expected="the same classes in both", got=f"{a.k} and {b.k} classes", fix=fix)


def same_rows(a: Predictions, b: Predictions) -> Predictions:
    """b in the order of a; an error when they are not about the same rows."""
    if a.ids is not None and b.ids is not None and a.n == b.n:
        order_a, order_b = np.argsort(a.ids, kind="stable"), np.argsort(b.ids, kind="stable")
        if not np.array_equal(a.ids[order_a], b.ids[order_b]):
            raise InputError("ids", expected="the same in both", got="different ids", fix="predict the same rows")
        back = np.empty(a.n, dtype=np.int64)
        back[order_a] = order_b
        b = b.take(back)
    if a.shape != b.shape:
        same_kind(a, b)
    if a.n != b.n or a.k != b.k:
        raise InputError(
            "compare",
            expected="the same rows and classes in both",
            got=f"{a.n} x {a.k} and {b.n} x {b.k}",
            fix="predict the same data set with both models, or compare different rows with paired=False (--unpaired)",
        )
    different = np.flatnonzero(a.labels != b.labels)
    if len(different):
        raise InputError(
            "labels",
            expected="the same in both, row by row",
            got=f"{len(different)} different ones, the first in row {different[0]}",
            fix="write both files in the same order, or give ids",
        )
    return b


def _better(chosen: Measure, a: float, b: float) -> str:
    if chosen.direction == "none":
        return "neither"
    cost = {"down": 1.0, "up": -1.0}.get(chosen.direction)
    a, b = (abs(a), abs(b)) if cost is None else (cost * a, cost * b)
    return "a" if a < b else "b"
