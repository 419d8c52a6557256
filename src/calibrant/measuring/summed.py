"""What sums say: the value of a measure, its noise, and an interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curve import Bins
from calibrant.core.errors import InputError
from calibrant.core.extras import Shape
from calibrant.core.intervals import Interval, basic_interval
from calibrant.core.noise import Sampling, Spread
from calibrant.core.notebook import Shown, Table
from calibrant.core.shapes import shape_words
from calibrant.core.wording import number
from calibrant.measures import Binned, Measure
from calibrant.measuring.limits import DRAWS
from calibrant.measuring.measure import Measurement, Measurements
from calibrant.measuring.ranked import drawn, ranked
from calibrant.measuring.streamable import RANKINGS, example, state_name, streamable
from calibrant.measuring.sums import FINE


class Summed(Shown):
    """Sums of the rows of a stream, and what can be read from them."""

    def __init__(self, measures: Sequence[str]) -> None:
        self._set_measures(measures)
        self.n, self.k = 0, 0
        self.shape: Shape | None = None  # of the predictions, once there are any
        self.total = self.square = 0.0  # weight of all rows, and of the squares
        self.weighted, self.counts, self.clustered = False, True, False
        self.sums: dict[str, Array] = {}  # name of a state -> its sums

    def measure(self, what: str, *, confidence: float = 0.95, seed: int = 0) -> Measurement:
        """One of the measures asked for at the start; intervals are by normal noise on the sums.

        Where rows came in clusters there is no interval: how far those share their errors is not kept.
        """
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
        words, value, rounding = m.defined(example(self.shape)), self._value(m, what), 0.0
        if isinstance(m, RANKINGS):
            found = ranked(m, self.sums[state_name(m, what)])
            rounding = found.error
            words += f"; from {FINE:,} bins of scores, off by at most {rounding:.1g}"
        if self.clustered or not np.isfinite(value):
            how = "none: rows came in clusters" if self.clustered else None
            return Measurement(what, value, None, None, self.n, self.k, words, how)
        span, how = self._span(m, what, value, confidence, seed)
        low, high = np.clip((span.low - rounding, span.high + rounding), *m.bounds)
        low, high = float(min(low, value)), float(max(high, value))
        return Measurement(what, value, low, high, self.n, self.k, words, how)

    def spread(self, what: str, seed: int = 0) -> Spread | None:
        """The noise of a calibration error, where that is known; bins (and classes) are taken as independent."""
        m, sums = self._measures[what], self.sums[state_name(self._measures[what], what)]
        if not isinstance(m, Binned):
            return None
        gap = ((sums[1] - sums[2]) / self.total).ravel()
        return m.spread_of(self._bins(sums), Sampling(self.n, DRAWS, seed).independent(gap, self._error(sums)))

    def draws(self, what: str, seed: int = 0) -> Array:
        """Values under the sampling noise of the sums: the variance that a bootstrap would give them."""
        return self._draws(self._measures[what], what, np.random.default_rng(seed))

    def made(self, what: str) -> Measure:
        """The measure of this name."""
        return self._measures[what]

    def _span(self, m: Measure, what: str, value: float, confidence: float, seed: int) -> tuple[Interval, str]:
        spread = self.spread(what, seed)
        if spread is not None:
            return spread.ends((1 - confidence) / 2), f"normal noise of the residuals, {DRAWS:,} draws"
        draws = self.draws(what, seed)
        kind = "counts" if isinstance(m, RANKINGS) else "sums"
        return basic_interval(value, draws, confidence, m.bounds), f"noise of the {kind}, {len(draws):,} draws"

    def measure_all(self, **options: Any) -> Measurements:
        return Measurements(self.measure(spec, **options) for spec in self.specs)

    def value(self, what: str) -> float:
        """The number alone, without the work of an interval."""
        return self._value(self._measures[what], what)

    def __repr__(self) -> str:
        shape = "" if self.shape is None else f", {shape_words(self.shape)}"
        return f"Accumulator({self.n:,} rows{shape})"

    def table(self) -> Table:
        measures = self._measures if self.n else {}
        rows = [(spec, number(self.value(spec)), m.defined(example(self.shape))) for spec, m in measures.items()]
        return repr(self), ("measure", "value", "what it is"), rows

    @property
    def histogram(self) -> tuple[Array, Array]:
        """Counts of (incorrect, correct) predictions in 100 equal-width bins of confidence."""
        count, _, hits, *_ = self.sums["histogram"]
        return count - hits, hits

    def _bins(self, sums: Array) -> Bins:
        worth = 1.0 if self.counts else self.total / self.square
        return Bins(sums[0], sums[1], sums[2], self.total, worth)

    def _value(self, m: Measure, spec: str) -> float:
        state = self.sums[state_name(m, spec)]
        if isinstance(m, Binned):
            return m.of(self._bins(state))
        if isinstance(m, RANKINGS):
            return ranked(m, state).value
        return float(state[0] / self.total)

    def _error(self, sums: Array) -> Array:
        """The standard error of each bin's residuals over all weight."""
        _, score, hits, square, cross = (part.ravel() for part in sums)
        gap = (score - hits) / self.total
        return np.asarray(np.sqrt(np.maximum(square - 2 * gap * cross + gap**2 * self.square, 0.0)) / self.total)

    def _draws(self, m: Measure, spec: str, rng: np.random.Generator) -> Array:
        sums = self.sums[state_name(m, spec)]
        if isinstance(m, RANKINGS):
            return drawn(m, sums, rng, counts=not self.weighted)
        if isinstance(m, Binned):
            count, score, hits = sums[:3]
            noise = self._error(sums).reshape(count.shape) * self.total
            made = []
            for _ in range(m.resamples):
                shaken = np.clip(hits + noise * rng.standard_normal(noise.shape), 0, count)
                made.append(m.of(self._bins(np.stack([count, score, shaken]))))
            return np.array(made)
        mean = sums[0] / self.total
        spread = np.sqrt(max(sums[1] - 2 * mean * sums[2] + mean**2 * self.square, 0.0)) / self.total
        return np.asarray(mean + spread * rng.standard_normal(m.resamples))

    def _set_measures(self, specs: Sequence[str]) -> None:
        self.specs = tuple(dict.fromkeys(specs))
        self._measures = {spec: streamable(spec) for spec in self.specs}
