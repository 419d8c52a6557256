"""The accumulator: measures of a stream from sums of fixed size, updated by batches, merged and saved as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.weighted import is_whole
from calibrant.core.errors import InputError
from calibrant.core.files import write_text
from calibrant.core.json import load_state, plain, whole
from calibrant.core.parallel import one_blas_thread
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.bootstrap import check_confidence
from calibrant.core.statistics.estimate import Estimate, Levels, subtract
from calibrant.core.statistics.fewest_rows import too_few_rows
from calibrant.core.statistics.sampling import OTHER
from calibrant.core.text.notebook import Table, TableResult
from calibrant.core.text.number_format import number
from calibrant.core.text.vocabulary import describe_task
from calibrant.measures import UNDEFINED, check_predictions
from calibrant.measuring.check import Check, check_estimate, check_worsening, limit_side, worsening_sign
from calibrant.measuring.compare import Comparison, compare_estimates
from calibrant.measuring.measure import Measurement, Measurements
from calibrant.streaming.cursor import Cursor, merge_cursors, read_cursors
from calibrant.streaming.measure_sums import POSITIVE, RANKING, MeasureSums
from calibrant.streaming.prometheus import Gauge, exposition
from calibrant.streaming.state import State, check_bins, check_named, check_same, check_shapes
from calibrant.streaming.streamable import example, raw_weights, streamable, usual
from calibrant.streaming.sums import FINE, HISTOGRAM, SUMS, fine_scores, score_sums

if TYPE_CHECKING:
    import altair as alt


SINGLE_OUTCOME = "no interval: sums of rows whose outcomes are all alike show no spread"


class Accumulator(TableResult):
    """Sums from which means over rows and measures with equal-width bins are computed exactly.

    >>> a = Accumulator(["ece:bins=2", "accuracy"])
    >>> a.update(Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1]))
    >>> round(a.measure("ece:bins=2").value, 3)
    0.25
    """

    def __init__(self, measures: Sequence[str] | None = None) -> None:
        self._by_default = measures is None  # the task of the first batch then selects among the default measures
        self._set_measures(usual(None) if measures is None else measures)
        self.n, self.k = 0, 0
        self.task: Task | None = None  # None before the first batch
        self.total = self.square = 0.0  # sum of the weights, and of their squares
        self.weighted, self.counts, self.clustered = False, True, False
        self.sums: dict[str, Array] = {}  # by the name of the state that the measures read
        self.files: dict[str, Cursor] = {}  # how far each file has been read

    # -- adding rows ----------------------------------------------------------------------------

    def update(self, p: Predictions | None) -> None:
        """Add a batch of any size; None adds nothing."""
        if p is None:
            return
        check_predictions(p)
        self._check_task(p.task, p.k)
        for stream in self._streams.values():
            stream.measure.check_shape(p)
        w = raw_weights(p)
        with one_blas_thread():  # the products are small: a second thread mostly waits
            for name, part in self._batch_sums(p, w):
                self._add(name, part)
        self.n += p.n
        self.total += p.n if w is None else float(w.sum())
        self.square += p.n if w is None else float(w @ w)
        self.weighted |= w is not None
        self.counts &= w is None or is_whole(w)
        self.clustered |= p.row_data.clusters is not None  # a cluster may continue in the next batch

    def merge(self, other: "Accumulator") -> "Accumulator":
        """A new accumulator of the rows of both; neither is changed."""
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
            both._check_task(part.task, part.k)
            both.n, both.total, both.square = both.n + part.n, both.total + part.total, both.square + part.square
            both.weighted, both.clustered = both.weighted or part.weighted, both.clustered or part.clustered
            both.counts = both.counts and part.counts
            for name, sums in part.sums.items():
                both._add(name, sums)
        both.files = merge_cursors(self.files, other.files)
        return both

    # -- measuring ------------------------------------------------------------------------------

    def measure(self, what: str, *, confidence: float = 0.95, seed: int = 0) -> Measurement:
        """Compute one of the accumulator's measures; its interval comes from normal noise on the sums.

        There is no interval for fewer than ten rows, nor for rows in clusters: how far the rows of a cluster share
        their errors is not kept.
        """
        definition = self._stream(what).measure.definition_for(example(self.task))
        e = self.estimate(what, seed=seed)
        if e.margin is not None:
            definition += f"; from {FINE:,} bins of scores, off by at most {e.margin:.1g}"
        return Measurement.from_estimate(what, e, confidence, n=self.n, k=self.k, definition=definition)

    def estimate(self, what: str, *, seed: int = 0, subtracted: bool = False) -> Estimate:
        """The value with its noise; `subtracted` from that of other sums, or for itself."""
        stream = self._stream(what)
        if self.n == 0:
            raise InputError("accumulator", expected="at least one batch", got="none", fix="call update first")
        e = stream.estimate(self.sums[stream.name], self, seed, subtracted=subtracted)
        if reason := "rows came in clusters" if self.clustered else self._too_few_rows():
            return replace(e, noise=None, reason=reason)
        if subtracted or e.noise is None:
            return e
        if not np.isfinite(e.value):
            return replace(e, noise=None, reason=UNDEFINED)
        if stream.measure.of_share and e.value in (0.0, 1.0):
            return replace(e, noise=self._noise_of_extreme_share(e.value))
        if self._has_single_outcome():
            return replace(e, noise=None, reason=SINGLE_OUTCOME)
        return replace(e, no_width=SINGLE_OUTCOME)

    def measure_all(self, **options: Any) -> Measurements:
        """Compute every measure of the accumulator; the options are those of `measure`."""
        return Measurements(self.measure(spec, **options) for spec in self.specs)

    def value(self, what: str) -> float:
        """The value of a measure, without the cost of an interval."""
        stream = self._streams[what]
        return stream.value(self.sums[stream.name], self)

    @property
    def histogram(self) -> tuple[Array, Array]:
        """Counts of (incorrect, correct) predictions in 100 equal-width bins of confidence."""
        count, _, outcomes, *_ = self.sums["histogram"]
        return count - outcomes, outcomes

    def __repr__(self) -> str:
        task = "" if self.task is None else f", {describe_task(self.task)}"
        return f"Accumulator({self.n:,} rows{task})"

    def table(self) -> Table:
        streams = self._streams if self.n else {}
        rows = [
            (spec, number(self.value(spec)), stream.measure.definition_for(example(self.task)))
            for spec, stream in streams.items()
        ]
        return repr(self), ("measure", "value", "what it is"), rows

    # -- limits, comparisons, figures -----------------------------------------------------------

    def check(
        self, what: str, *, limit: float, side: Literal["max", "min"] | None = None, confidence: float = 0.95
    ) -> Check:
        """Check a limit for a measure, as `cal.check` does: violated on evidence, not on noise."""
        check_confidence(confidence)
        e = self.estimate(what)
        side = limit_side(self._streams[what].measure, what, limit, side)
        if self.clustered or not np.isfinite(e.value):
            expected, got = "an interval to compare with the limit", e.reason or UNDEFINED
            raise InputError(what, expected=expected, got=got, fix="measure all rows at once")
        return check_estimate(what, side, limit, e, 1 - confidence, rows=self, definition=self.measure(what).definition)

    def check_against(
        self, reference: "Accumulator", what: str, *, limit: float, confidence: float = 0.95, seed: int = 0
    ) -> Check:
        """Check by how much a measure is worse than on the reference rows, as `cal.check(..., against=...)` does."""
        check_confidence(confidence)
        e, definition = reference._difference(self, what, seed), reference.measure(what).definition
        definition = f"{definition}; worse than on {reference.n:,} reference rows by"
        sign = worsening_sign(self._streams[what].measure, what, limit)
        return check_worsening(what, limit, sign, e, 1 - confidence, rows=self, definition=definition)

    def compare(self, other: "Accumulator", what: str, *, confidence: float = 0.95, seed: int = 0) -> Comparison:
        """Compare the other accumulator with this one, on different rows, as `cal.compare(..., paired=False)` does."""
        check_confidence(confidence)
        e, m = self._difference(other, what, seed), self._streams[what].measure
        comparison = compare_estimates(m, what, example(self.task), e, confidence)
        definition = self.measure(what).definition
        return replace(comparison, n=self.n, k=self.k, definition=definition, paired=False, n_b=other.n)

    def _difference(self, other: "Accumulator", what: str, seed: int) -> Estimate:
        """The difference of a measure of the other accumulator from that of this one."""
        pair = self.estimate(what, seed=seed, subtracted=True), other.estimate(what, seed=seed + OTHER, subtracted=True)
        if self.task != other.task:
            got, fix = f"{self.task} and {other.task}", "compare streams of the same task"
            raise InputError("compare", expected="predictions of one task", got=got, fix=fix)
        if self.clustered or other.clustered:
            fix = "compare the predictions with their clusters"
            raise InputError("compare", expected="rows that are not in clusters", got="rows in clusters", fix=fix)
        return subtract(*pair, self._streams[what].measure.ideal)

    def to_predictions(self) -> Predictions:
        """Weighted rows in place of the original ones, for figures: two for each bin of scores, correct and incorrect.

        Values measured on them are close to those of `measure`. Their intervals are not valid: the rows are gone.
        """
        if self.n == 0:
            raise InputError("accumulator", expected="at least one batch", got="none", fix="call update first")
        fine = self.sums.get(RANKING, self.sums.get(POSITIVE) if self.task == "binary" else None)
        if fine is not None:
            ones, zeros, scores = *fine[:2], fine_scores()
        else:
            count, score, ones = self.sums["histogram"][:3]
            middle = (np.arange(HISTOGRAM) + 0.5) / HISTOGRAM
            zeros, scores = count - ones, np.divide(score, count, out=middle, where=count > 0)
        weights = np.concatenate([ones, zeros])
        filled = weights > 0
        rows = np.concatenate([scores, scores])[filled], np.repeat([1, 0], len(scores))[filled]
        build = Predictions.binary if self.task == "binary" else Predictions.from_confidence
        return build(*rows, weights=weights[filled])

    def to_prometheus(self) -> str:
        """Every measure in the text format of Prometheus."""
        return exposition(measure_gauges((), {(): self}))

    def plot(self, figure: str = "reliability") -> "alt.TopLevelMixin":
        """A figure of `to_predictions()`. A notebook displays it, and its `save` writes a file."""
        return plot_sums({"all rows": self}, figure)

    # -- saving and loading ---------------------------------------------------------------------

    def to_json(self) -> str:
        return State(
            measures=self.specs,
            n=self.n,
            k=self.k,
            task=self.task,
            total=self.total,
            square=self.square,
            weighted=self.weighted,
            counts=self.counts,
            clustered=self.clustered,
            files=plain(self.files),
            sums=self.sums,
        ).to_json()

    @classmethod
    def from_json(cls, text: str, *, own: Sequence[str] = ()) -> "Accumulator":
        """Read what `to_json` wrote. Measures in files of Python code are run only if they are named in `own`."""
        state = State.from_json(text)
        check_named(state.measures, own)
        with whole("accumulator", fix="save it again"):
            a = cls(state.measures)
            a.n, a.k, a.task, a.sums = state.n, state.k, state.task, state.sums
            a.total, a.square = state.total, state.square
            a.weighted, a.counts, a.clustered = state.weighted, state.counts, state.clustered
            a.files = read_cursors(state.files)
            a._check_sums(state)
            return a

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path, *, own: Sequence[str] = ()) -> "Accumulator":
        """Load a file that `save` wrote; `own` as for `from_json`."""
        return load_state(path, partial(cls.from_json, own=own), expected="a saved accumulator")

    # -- private --------------------------------------------------------------------------------

    def _set_measures(self, specs: Sequence[str]) -> None:
        self.specs = tuple(dict.fromkeys(specs))
        self._streams = {spec: streamable(spec) for spec in self.specs}

    def _stream(self, what: str) -> MeasureSums[Any]:
        if what not in self._streams:
            expected, fix = f"one of {', '.join(self.specs)}", "list it at the start"
            raise InputError("measure", expected=expected, got=f"'{what}'", fix=fix)
        return self._streams[what]

    def _check_task(self, task: Task | None, k: int) -> None:
        if self.task is not None and task is not None and self.task != task:
            expected, fix = f"{describe_task(self.task)} as before", "use one accumulator for each task"
            raise InputError("accumulator", expected=expected, got=describe_task(task), fix=fix)
        if self.k not in (0, k) and task != "choice":
            expected, fix = f"{self.k} classes as before", "use one accumulator for each model"
            raise InputError("accumulator", expected=expected, got=str(k), fix=fix)
        if self.task is None and self._by_default:
            self._set_measures(usual(task))
        self.task, self.k = task, max(self.k, k)

    def _batch_sums(self, p: Predictions, w: Array | None) -> Iterator[tuple[str, Array]]:
        """The sums that a batch adds to each state. Measures with the same bins share one state."""
        yield "histogram", score_sums(p.score, p.outcome.astype(np.float64), w, HISTOGRAM, "right")
        for name, stream in self._states().items():
            yield name, stream.add_up(p, w)

    def _states(self) -> dict[str, MeasureSums[Any]]:
        """The states that the measures read, each with one of these measures."""
        return {stream.name: stream for stream in self._streams.values()}

    def _add(self, name: str, part: Array) -> None:
        self.sums[name] = self.sums[name] + part if name in self.sums else part

    def _has_single_outcome(self) -> bool:
        count, _, outcomes = self.sums["histogram"][:3]
        return float(outcomes.sum()) in (0.0, float(count.sum()))

    def _noise_of_extreme_share(self, value: float) -> Levels:
        """The noise of a share of 0 or 1: no row of the other kind was seen."""
        rows = self.total**2 / self.square
        return Levels(
            values=np.array([value]),
            shares=np.ones(1),
            counts=np.array([rows]),
            unseen=(0.0, 1.0),
            rows=rows,
            method="Clopper and Pearson, for a share of 0 or 1",
        )

    def _too_few_rows(self) -> str | None:
        """The reason for no interval; None where there are enough rows, by Kish's formula if they have weights."""
        return too_few_rows(self.total**2 / self.square)

    def _check_sums(self, state: State) -> None:
        """Refuse sums that no predictions have."""
        states = self._states()
        check_shapes(state, {"histogram": (SUMS, HISTOGRAM)} | {name: s.shape(self.k) for name, s in states.items()})
        if not self.n:
            return
        check_bins("histogram", state.sums["histogram"], state)
        for name, stream in states.items():
            stream.check(state.sums[name], state)
        of_score = ["histogram", *(name for name, stream in states.items() if stream.of_score)]
        check_same({name: state.sums[name] for name in of_score}, state)


def measure_gauges(by: Sequence[str], accumulators: Mapping[tuple[str, ...], Accumulator]) -> list[Gauge]:
    """The number of rows, every measure and both ends of its interval; where there is no interval, no ends."""
    rows, gauges = Gauge("calibrant_rows", "rows added"), dict[str, Gauge]()
    for key, accumulator in accumulators.items():
        labels = dict(zip(by, key, strict=True))
        rows.values.append((labels, accumulator.n))
        for m in accumulator.measure_all() if accumulator.n else ():
            name, _, options = m.measure.partition(":")
            own = labels | ({"options": options} if options else {})
            for end, value in (("", m.value), ("_low", m.low), ("_high", m.high)):
                if value is not None and value == value:
                    words = f"{end[1:]} end of the interval of {name}" if end else m.definition
                    gauge = gauges.setdefault(f"calibrant_{name}{end}", Gauge(f"calibrant_{name}{end}", words))
                    gauge.values.append((own, value))
    return [rows, *gauges.values()]


def plot_sums(accumulators: Mapping[str, Accumulator], figure: str) -> "alt.TopLevelMixin":
    """Draw a figure of predictions from the sums of one or more accumulators."""
    from calibrant.figures import CATALOGUE, PredictionFigure

    drawing = CATALOGUE.make(figure)
    if not isinstance(drawing, PredictionFigure):
        fix = "use for instance reliability or risk_coverage"
        raise InputError("plot", expected="a figure of predictions", got=f"'{figure}'", fix=fix)
    return drawing.chart(
        drawing.data({name: accumulator.to_predictions() for name, accumulator in accumulators.items()})
    )
