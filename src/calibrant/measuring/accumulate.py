"""Measures of a stream: a state of fixed size, updated by batches, merged over processes or days, saved as JSON."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curve import Bins
from calibrant.core.errors import InputError
from calibrant.core.extras import Shape
from calibrant.core.intervals import Interval, basic_interval
from calibrant.core.noise import Sampling, Spread
from calibrant.core.notebook import Shown, Table
from calibrant.core.predictions import Predictions
from calibrant.core.schema import whole
from calibrant.core.shapes import shape_words
from calibrant.core.weighted import is_whole
from calibrant.core.wording import number
from calibrant.measures import Binned, ClassMeasure, CurveMeasure, Measure, RowMeasure
from calibrant.measures.roc_auc import ROCAUC
from calibrant.measuring.limits import DRAWS
from calibrant.measuring.measure import Measurement, Measurements
from calibrant.measuring.ranked import drawn, ranked
from calibrant.measuring.state import (
    State,
    check_bins,
    check_named,
    check_ranking,
    check_rows,
    check_same,
    check_shapes,
)
from calibrant.measuring.streamable import (
    HISTOGRAM,
    RANKINGS,
    TOP,
    example,
    given_weights,
    state_name,
    streamable,
    sums_shape,
    usual,
)
from calibrant.measuring.sums import FINE, SUMS, class_sums, fine_sums, row_sums, score_sums

if TYPE_CHECKING:
    import altair as alt

    from calibrant.measuring.check import Check
    from calibrant.measuring.compare import Comparison


class Accumulator(Shown):
    """Sums that measures with fixed bins, and means over rows, can be computed from exactly.

    >>> a = Accumulator(["ece:bins=2", "accuracy"])
    >>> a.update(Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1]))
    >>> round(a.measure("ece:bins=2").value, 3)
    0.25
    """

    def __init__(self, measures: Sequence[str] | None = None) -> None:
        self._asked = measures is not None
        self._set_measures(usual(None) if measures is None else measures)
        self.n, self.k = 0, 0
        self.shape: Shape | None = None  # of the predictions, once there are any
        self.total = self.square = 0.0  # weight of all rows, and of the squares
        self.weighted, self.counts, self.clustered = False, True, False
        self.sums: dict[str, Array] = {}  # name of a state -> its sums

    def update(self, p: Predictions | None) -> None:
        """Add a batch of any size; None adds nothing."""
        if p is None:
            return
        self._same_kind(p.shape, p.k)
        for m in self._measures.values():
            m.check_shape(p)
        w = given_weights(p)
        for name, part in self._parts(p, w):
            self._add(name, part)
        self.n += p.n
        self.total += p.n if w is None else float(w.sum())
        self.square += p.n if w is None else float(w @ w)
        self.weighted |= w is not None
        self.counts &= w is None or is_whole(w)
        self.clustered |= p.extras.clusters is not None  # which may go on in the next batch

    def merge(self, other: "Accumulator") -> "Accumulator":
        """The accumulator of both streams; neither is changed."""
        filled = [part for part in (self, other) if part.n]
        if (filled or (self, other))[0].specs != (filled or (self, other))[-1].specs:
            raise InputError(
                "merge",
                expected=f"the same measures ({', '.join(self.specs)})",
                got=", ".join(other.specs),
                fix="build both accumulators with the same list",
            )
        both = Accumulator(filled[0].specs if filled else self.specs)
        for part in filled:
            both._same_kind(part.shape, part.k)
            both.n, both.total, both.square = both.n + part.n, both.total + part.total, both.square + part.square
            both.weighted, both.clustered = both.weighted or part.weighted, both.clustered or part.clustered
            both.counts = both.counts and part.counts
            for name, sums in part.sums.items():
                both._add(name, sums)
        return both

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

    def check(
        self, what: str, *, limit: float, side: Literal["max", "min"] = "max", confidence: float = 0.95
    ) -> "Check":
        """A limit for one of the measures, as `cal.check` judges it: broken on evidence, not on noise."""
        from calibrant.measuring.from_sums import check_sums

        return check_sums(self, what, limit, side, confidence)

    def compare(self, other: "Accumulator", what: str, *, confidence: float = 0.95, seed: int = 0) -> "Comparison":
        """The other minus this one, from different rows, as `cal.compare(..., paired=False)` finds it."""
        from calibrant.measuring.from_sums import compare_sums

        return compare_sums(self, other, what, confidence, seed)

    def to_predictions(self) -> Predictions:
        """Weighted rows that stand for all of them, for figures: scores are rounded to the bins they fell into.

        Their values are close to those of `measure`; their intervals are not to be trusted, since rows are gone.
        """
        from calibrant.measuring.from_sums import stand_ins

        return stand_ins(self)

    def plot(self, figure: str = "reliability") -> "alt.TopLevelMixin":
        """A figure of the stand-in rows; it shows itself in a notebook, and `save` writes it."""
        from calibrant.measuring.from_sums import plot_sums

        return plot_sums({"all rows": self}, figure)

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

    # -- on disk --------------------------------------------------------------------------------

    def to_json(self) -> str:
        return self._state().to_json()

    @classmethod
    def from_json(cls, text: str, *, own: Sequence[str] = ()) -> "Accumulator":
        """What `to_json` gave. A state may name measures of the catalogue, and files only if you name them in `own`."""
        state = State.from_json(text)
        check_named(state.measures, own)
        with whole("accumulator", fix="save it again"):
            made = cls(state.measures)
            made.n, made.k, made.shape, made.sums = state.n, state.k, state.shape, state.sums
            made.total, made.square = state.total, state.square
            made.weighted, made.counts, made.clustered = state.weighted, state.counts, state.clustered
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

    def _set_measures(self, specs: Sequence[str]) -> None:
        self.specs = tuple(dict.fromkeys(specs))
        self._measures = {spec: streamable(spec) for spec in self.specs}

    def _state(self) -> State:
        about = self.n, self.k, self.shape, self.total, self.square, self.weighted, self.counts, self.clustered
        return State(self.specs, *about, self.sums)

    def _parts(self, p: Predictions, w: Array | None) -> Iterator[tuple[str, Array]]:
        """What a batch adds to each state. Measures with the same bins share one state."""
        event = p.score, p.hit.astype(np.float64)
        yield "histogram", score_sums(*event, w, HISTOGRAM, "right")
        names = {state_name(m, spec): m for spec, m in self._measures.items()}
        for name, m in names.items():
            scores, hits = event
            if isinstance(m, CurveMeasure) and m.scope == "top":
                scores, hits = p.confidence, p.correct.astype(np.float64)
            elif isinstance(m, ROCAUC) and p.shape != "binary":  # of two classes the second is the positive one
                scores, hits = p.probs[:, 1], (p.labels == 1).astype(np.float64)
            if isinstance(m, ClassMeasure):
                yield name, class_sums(p, w, m)
            elif isinstance(m, Binned):
                yield name, score_sums(scores, hits, w, m.bins, m.closed)
            elif isinstance(m, RANKINGS):
                yield name, fine_sums(scores, hits, w)
            elif isinstance(m, RowMeasure):
                yield name, row_sums(m.rows(p).astype(np.float64), w)

    def _check(self, state: State) -> None:
        """Refuse sums that no predictions have."""
        kinds = {"histogram": None, **{state_name(m, spec): m for spec, m in self._measures.items()}}
        check_shapes(state, {name: sums_shape(m, self.k) for name, m in kinds.items()})
        for name, sums in state.sums.items():
            m = kinds[name]
            if m is None or isinstance(m, Binned):
                check_bins(name, sums, state)
            elif isinstance(m, RANKINGS):
                check_ranking(name, sums, state)
            else:
                check_rows(name, sums, state, m.bounds)
        if self.n:
            alike = {
                name: s for name, s in state.sums.items() if s.shape[0] == SUMS and s.ndim == 2 and TOP not in name
            }
            check_same(alike, state)

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

    def _add(self, name: str, part: Array) -> None:
        self.sums[name] = self.sums[name] + part if name in self.sums else part

    def _same_kind(self, shape: Shape | None, k: int) -> None:
        if self.shape is not None and shape is not None and self.shape != shape:
            expected, fix = f"{shape_words(self.shape)} as before", "use one accumulator for each kind of predictions"
            raise InputError("accumulator", expected=expected, got=shape_words(shape), fix=fix)
        if self.k not in (0, k) and shape != "choices":
            raise InputError(
                "accumulator",
                expected=f"{self.k} classes as before",
                got=str(k),
                fix="use one model per accumulator",
            )
        if self.shape is None and not self._asked:  # of the usual ones, those that this shape can answer
            self._set_measures(usual(shape))
        self.shape, self.k = shape, max(self.k, k)
