"""Measures of a stream: a state of fixed size, updated by batches, merged over processes or days, saved as JSON."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curve import Bins
from calibrant.core.errors import InputError
from calibrant.core.intervals import Interval, basic_interval
from calibrant.core.noise import Sampling
from calibrant.core.predictions import Predictions
from calibrant.core.schema import whole
from calibrant.measures import CATALOGUE, Binned, ClassMeasure, Measure, RowMeasure
from calibrant.measures.classwise import Classwise
from calibrant.measures.refinement import Refinement
from calibrant.measures.uncertainty import Uncertainty
from calibrant.measuring.limits import DRAWS
from calibrant.measuring.measure import Measurement
from calibrant.measuring.state import State, check_bins, check_named, check_rows, check_same, check_shapes
from calibrant.measuring.sums import class_sums, top_sums

STREAMED = (
    "accuracy",
    "nll",
    "brier",
    "gap",
    "ece",
    "classwise",
    "mce",
    "rmsce",
    "reliability",
    "resolution",
)
HISTOGRAM = 100  # equal-width bins of the confidence histograms


class Accumulator:
    """Sums that measures with fixed bins, and means over rows, can be computed from exactly.

    >>> a = Accumulator(["ece:bins=2", "accuracy"])
    >>> a.update(Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1]))
    >>> round(a.measure("ece:bins=2").value, 3)
    0.25
    """

    def __init__(self, measures: Sequence[str] = STREAMED) -> None:
        self.specs = tuple(dict.fromkeys(measures))
        self._measures = {spec: _streamable(spec) for spec in self.specs}
        self.n, self.k = 0, 0
        self.sums: dict[str, Array] = {}  # name of a state -> its sums

    def update(self, p: Predictions) -> None:
        """Add a batch."""
        self._same_k(p.k)
        for name, part in self._parts(p):
            self._add(name, part)
        self.n += p.n

    def merge(self, other: "Accumulator") -> "Accumulator":
        """The accumulator of both streams; neither is changed."""
        if self.specs != other.specs:
            raise InputError(
                "merge",
                expected=f"the same measures ({', '.join(self.specs)})",
                got=", ".join(other.specs),
                fix="build both accumulators with the same list",
            )
        both = Accumulator(self.specs)
        for part in (self, other):
            if part.n:
                both._same_k(part.k)
                both.n += part.n
                for name, sums in part.sums.items():
                    both._add(name, sums)
        return both

    def measure(self, what: str, *, confidence: float = 0.95, seed: int = 0) -> Measurement:
        """One of the measures asked for at the start; intervals are by normal noise on the sums."""
        if what not in self._measures:
            raise InputError(
                "measure",
                expected=f"one of {', '.join(self.specs)}",
                got=f"'{what}'",
                fix="list it at the start",
            )
        if self.n == 0:
            raise InputError("accumulator", expected="at least one batch", got="none", fix="call update first")
        m = self._measures[what]
        value, tail = self._value(m, what), (1 - confidence) / 2
        found = self._ends(m, what, tail, seed)
        how = f"normal noise of the residuals, {DRAWS:,} draws"
        if found is None:
            draws = self._draws(m, what, np.random.default_rng(seed))
            found = basic_interval(value, draws, confidence, m.bounds)
            how = f"normal noise of the sums, {len(draws):,} draws"
        low, high = np.clip((found.low, found.high), *m.bounds)
        low, high = float(min(low, value)), float(max(high, value))
        return Measurement(what, value, low, high, self.n, self.k, m.definition, how)

    def measure_all(self, **options: Any) -> list[Measurement]:
        return [self.measure(spec, **options) for spec in self.specs]

    @property
    def histogram(self) -> tuple[Array, Array]:
        """Counts of (incorrect, correct) predictions in 100 equal-width bins of confidence."""
        count, _, hits, _ = self.sums["histogram"]
        return count - hits, hits

    # -- on disk --------------------------------------------------------------------------------

    def to_json(self) -> str:
        return State(self.specs, self.n, self.k, self.sums).to_json()

    @classmethod
    def from_json(cls, text: str, *, own: Sequence[str] = ()) -> "Accumulator":
        """What `to_json` gave. A state may name measures of the catalogue, and files only if you name them in `own`."""
        state = State.from_json(text)
        check_named(state.measures, own)
        with whole("accumulator", fix="save it again"):
            made = cls(state.measures)
            made.n, made.k, made.sums = state.n, state.k, state.sums
            made._check(state)
            return made

    def save(self, path: str | Path) -> None:
        from calibrant.core.disk import write_whole

        write_whole(path, lambda stream: stream.write(self.to_json().encode()))

    @classmethod
    def load(cls, path: str | Path, *, own: Sequence[str] = ()) -> "Accumulator":
        """From a file that `save` wrote; `own` as for `from_json`."""
        file = Path(path)
        if not file.is_file():
            raise InputError(str(path), expected="a saved accumulator", got="no such file", fix="check the path")
        try:
            return cls.from_json(file.read_text(encoding="utf-8", errors="replace"), own=own)
        except InputError as error:
            raise InputError.inside(str(path), error) from None

    # -- how it works ---------------------------------------------------------------------------

    def _parts(self, p: Predictions) -> Iterator[tuple[str, Array]]:
        """What a batch adds to each state. Measures with the same bins share one state."""
        yield "histogram", top_sums(p, HISTOGRAM, "right")
        names = {_state(m, spec): m for spec, m in self._measures.items()}
        for name, m in names.items():
            if isinstance(m, ClassMeasure):
                yield name, class_sums(p, m)
            elif isinstance(m, Binned):
                yield name, top_sums(p, m.bins, m.closed)
            elif isinstance(m, RowMeasure):
                rows = m.rows(p)
                yield name, np.array([rows.sum(), (rows**2).sum()])

    def _check(self, state: State) -> None:
        """Refuse sums that no predictions have."""
        kinds = {"histogram": None, **{_state(m, spec): m for spec, m in self._measures.items()}}
        check_shapes(state, {name: _shape(m, self.k) for name, m in kinds.items()})
        for name, sums in state.sums.items():
            m = kinds[name]
            if m is None or isinstance(m, Binned):
                check_bins(name, sums, self.n)
            else:
                check_rows(name, sums, self.n, m.bounds)
        if self.n:
            check_same({name: sums for name, sums in state.sums.items() if sums.ndim == 2}, self.n)

    def _value(self, m: Measure, spec: str) -> float:
        state = self.sums[_state(m, spec)]
        if isinstance(m, Binned):
            return m.of(Bins(state[0], state[1], state[2], self.n))
        return float(state[0] / self.n)

    def _ends(self, m: Measure, spec: str, tail: float, seed: int) -> Interval | None:
        """As `measure` finds them, with the bins (and classes) taken as independent: their products are not kept."""
        if not isinstance(m, Binned):
            return None
        count, score_sum, hit_sum, square = self.sums[_state(m, spec)]
        gap = ((score_sum - hit_sum) / self.n).ravel()
        error = np.sqrt(np.maximum(square.ravel() / self.n - gap**2, 0.0) / self.n)
        sums = Sampling(self.n, DRAWS, seed).independent(gap, error)
        spread = m.spread_of(Bins(count, score_sum, hit_sum, self.n), sums)
        return None if spread is None else spread.ends(tail)

    def _draws(self, m: Measure, spec: str, rng: np.random.Generator) -> Array:
        """Values under the sampling noise of the sums: the variance a bootstrap would give them."""
        state = self.sums[_state(m, spec)]
        if isinstance(m, Binned):
            count, score_sum, hit_sum, square = state
            noise = np.sqrt(np.maximum(square - (score_sum - hit_sum) ** 2 / self.n, 0.0))
            drawn = [
                Bins(
                    count,
                    score_sum,
                    np.clip(hit_sum + noise * rng.standard_normal(noise.shape), 0, count),
                    self.n,
                )
                for _ in range(m.resamples)
            ]
            return np.array([m.of(b) for b in drawn])
        mean = state[0] / self.n
        spread = np.sqrt(max(state[1] / self.n - mean**2, 0.0) / self.n)
        return np.asarray(mean + spread * rng.standard_normal(m.resamples))

    def _add(self, name: str, part: Array) -> None:
        self.sums[name] = self.sums[name] + part if name in self.sums else part

    def _same_k(self, k: int) -> None:
        if self.k not in (0, k):
            raise InputError(
                "accumulator",
                expected=f"{self.k} classes as before",
                got=str(k),
                fix="use one model per accumulator",
            )
        self.k = k


def _streamable(spec: str) -> Measure:
    m = CATALOGUE.make(spec)
    fixed_bins = isinstance(m, Binned) and m.scheme == "width" and getattr(m, "dialect", None) is None
    if isinstance(m, ClassMeasure):
        ok = fixed_bins and isinstance(m, Classwise)
    elif isinstance(m, Binned):
        ok = fixed_bins
    else:
        ok = isinstance(m, RowMeasure) and not isinstance(m, Refinement)
    if not ok or isinstance(m, Uncertainty):
        raise InputError(
            f"stream of {spec}",
            expected="a mean over rows or equal-width bins",
            got="a measure that needs all rows at once",
            fix=f"use for instance {', '.join(STREAMED)}, or measure without a stream",
        )
    return m


def _state(m: Measure, spec: str) -> str:
    if isinstance(m, ClassMeasure):
        return f"classes, {m.bins} bins, {m.closed}"
    if isinstance(m, Binned):
        return f"top label, {m.bins} bins, {m.closed}"
    return spec


def _shape(m: Measure | None, k: int) -> tuple[int, ...]:
    """Of the sums of a measure; None is the histogram."""
    if m is None:
        return (4, HISTOGRAM)
    if isinstance(m, Binned):
        return (4, k, m.bins) if isinstance(m, ClassMeasure) else (4, m.bins)
    return (2,)
