"""The accumulator: measures of a stream from sums of fixed size, updated by batches, merged and saved as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calibrant.core.arrays import Array, Integers
from calibrant.core.config.convert import from_json
from calibrant.core.curves.weighted import is_whole
from calibrant.core.errors import InputError
from calibrant.core.files import write_text
from calibrant.core.json import load_state, parse_state, plain, whole, write_state
from calibrant.core.parallel import one_blas_thread
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.bootstrap import check_confidence
from calibrant.core.statistics.estimate import Estimate, Levels, subtract
from calibrant.core.statistics.fewest_rows import too_few_rows
from calibrant.core.statistics.sampling import OTHER
from calibrant.core.text.number_format import number
from calibrant.core.text.table import Table, TableResult
from calibrant.core.text.vocabulary import describe_task
from calibrant.measures import UNDEFINED, check_predictions
from calibrant.measuring.check import Check, check_estimate, check_worsening, limit_side, worsening_sign
from calibrant.measuring.compare import Comparison, compare_estimates
from calibrant.measuring.measure import Measurement, Measurements
from calibrant.streaming.cursor import Cursor, merge_cursors
from calibrant.streaming.measure_sums import POSITIVE, RANKING, MeasureSums
from calibrant.streaming.prometheus import measure_exposition
from calibrant.streaming.state import (
    VERSION,
    State,
    check_named,
    check_shapes,
    hash_names,
    hashes_from_text,
    hashes_to_text,
    sums_from_json,
    sums_to_json,
)
from calibrant.streaming.streamable import example, raw_weights, streamable, usual
from calibrant.streaming.sums import COARSE, FINE, HISTOGRAM_BINS, coarsen, fine_scores, row_sums, score_sums, unit_sums

if TYPE_CHECKING:
    import altair as alt

HISTOGRAM, RESIDUALS = "histogram", "residuals"  # states that every accumulator has
ADDED = ("n", "total", "square", "units", "unit_square")  # numbers that are summed over batches
FIELDS = (*ADDED, "k", "task", "weighted", "counts", "clustered", "open_reason")
MOST_NAMES = 100_000  # clusters whose names are remembered, 8 bytes each
OPEN = "clusters may continue in other batches"
AGAIN = "a cluster came in more than one batch"
TOO_MANY_NAMES = f"more than {MOST_NAMES:,} clusters: whether one came in more than one batch is not known"
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
        self.units, self.unit_square = 0, 0.0  # clusters (and rows without), and the sum of their squared weights
        self.weighted, self.counts, self.clustered = False, True, False
        self.open_reason: str | None = None  # why it is unknown which rows form a cluster
        self.clusters: frozenset[int] = frozenset()  # hashes of the names of all clusters
        self.sums: dict[str, Array] = {}  # by the name of the state that the measures read
        self.files: dict[str, Cursor] = {}  # how far each file has been read

    # -- adding rows ----------------------------------------------------------------------------

    def update(self, p: Predictions | None, *, open_clusters: bool = False) -> None:
        """Add a batch of any size; None adds nothing.

        A batch holds whole clusters. If it may not, say `open_clusters=True`: then there is no interval. Nor is there
        one if a cluster with the name of an earlier one comes, or if more than 100,000 names must be remembered.
        """
        if p is None:
            return
        check_predictions(p)
        self._check_task(p.task, p.k)
        for stream in self._streams.values():
            stream.measure.check_shape(p)
        w, clusters = raw_weights(p), p.clusters
        with one_blas_thread():  # the products are small: a second thread mostly waits
            self._add(self._batch_sums(p, w, clusters))
            weights = unit_sums(np.ones(p.n), w, clusters)
        self.n += p.n
        self.total += p.n if w is None else float(w.sum())
        self.square += p.n if w is None else float(w @ w)
        self.units += len(weights)
        self.unit_square += float(weights @ weights)
        self.weighted |= w is not None
        self.counts &= w is None or is_whole(w)
        self.clustered |= clusters is not None
        if open_clusters:
            self.open_reason = self.open_reason or OPEN
        if p.row_data.cluster_names is not None:
            self._remember(hash_names(p.row_data.cluster_names))

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
            for name in ADDED:
                setattr(both, name, getattr(both, name) + getattr(part, name))
            both.weighted, both.clustered = both.weighted or part.weighted, both.clustered or part.clustered
            both.counts = both.counts and part.counts
            both.open_reason = both.open_reason or part.open_reason
            both._remember(part.clusters)
            both._add(part.sums)
        both.files = merge_cursors(self.files, other.files)
        return both

    # -- measuring ------------------------------------------------------------------------------

    def measure(self, what: str, *, confidence: float = 0.95, seed: int = 0) -> Measurement:
        """Compute one of the accumulator's measures; its interval comes from normal noise on the sums.

        There is no interval for fewer than ten rows (or clusters), nor where clusters may have come in parts.
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
        e = stream.estimate(self, seed, subtracted=subtracted)
        if reason := self.open_reason or self._too_few():
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
        return self._streams[what].value(self)

    @property
    def histogram(self) -> tuple[Array, Array]:
        """Counts of (incorrect, correct) predictions in 100 equal-width bins of confidence."""
        count, _, outcomes = self.sums[HISTOGRAM]
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
        if not np.isfinite(e.value):
            expected, fix = "an interval to compare with the limit", "measure all rows at once"
            raise InputError(what, expected=expected, got=UNDEFINED, fix=fix)
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
        return subtract(*pair, self._streams[what].measure.ideal)

    def to_predictions(self) -> Predictions:
        """Weighted rows in place of the original ones, for figures: two for each bin of scores, correct and incorrect.

        Values measured on them are close to those of `measure`. Their intervals are not valid: the rows are gone.
        """
        if self.n == 0:
            raise InputError("accumulator", expected="at least one batch", got="none", fix="call update first")
        fine = self.sums.get(RANKING, self.sums.get(POSITIVE) if self.task == "binary" else None)
        if fine is not None:
            (ones, zeros), scores = coarsen(fine), fine_scores(COARSE)
        else:
            count, score, ones = self.sums[HISTOGRAM]
            middle = (np.arange(HISTOGRAM_BINS) + 0.5) / HISTOGRAM_BINS
            zeros, scores = count - ones, np.divide(score, count, out=middle, where=count > 0)
        weights = np.concatenate([ones, zeros])
        filled = weights > 0
        rows = np.concatenate([scores, scores])[filled], np.repeat([1, 0], len(scores))[filled]
        build = Predictions.binary if self.task == "binary" else Predictions.from_confidence
        return build(*rows, weights=weights[filled])

    def to_prometheus(self) -> str:
        """Every measure in the text format of Prometheus."""
        return measure_exposition((), {(): (self.n, self.measure_all() if self.n else ())})

    def plot(self, figure: str = "reliability") -> "alt.TopLevelMixin":
        """A figure of `to_predictions()`. A notebook displays it, and its `save` writes a file."""
        from calibrant.streaming.plot import plot_sums

        return plot_sums({"all rows": self.to_predictions()}, figure)

    # -- saving and loading ---------------------------------------------------------------------

    def to_json(self) -> str:
        return write_state("accumulator", VERSION, self.to_state())

    def to_state(self) -> dict[str, Any]:
        """The fields of the state as plain JSON."""
        others = {name: getattr(self, name) for name in FIELDS}
        coded = {"clusters": hashes_to_text(self.clusters), "sums": sums_to_json(self.sums)}
        return dict(plain({"measures": self.specs, **others, "files": self.files, **coded}))

    @classmethod
    def from_json(cls, text: str, *, own: Sequence[str] = ()) -> "Accumulator":
        """Read what `to_json` wrote. Measures in files of Python code are run only if they are named in `own`."""
        state = parse_state(text, "accumulator", VERSION, written_by="Accumulator.save", fix="save it again")
        with whole("accumulator", fix="save it again"):
            return cls.from_state(state, own=own)

    @classmethod
    def from_state(cls, fields: Any, *, own: Sequence[str] = ()) -> "Accumulator":
        """Read what `to_state` returned."""
        state = from_json(State, fields)
        check_named(state.measures, own)
        a = cls(state.measures)
        for name in FIELDS:
            setattr(a, name, getattr(state, name))
        a.files, a.clusters = state.files, hashes_from_text(state.clusters)
        a.sums = sums_from_json(state.sums)
        shapes = a._shapes()
        more = {name: shape for stream in a._states() for name, shape in stream.more_shapes(a.k).items()}
        check_shapes(a.sums, shapes if a.n else {}, shapes | more)
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

    def _batch_sums(self, p: Predictions, w: Array | None, clusters: Integers | None) -> dict[str, Array]:
        """The sums of a batch, by name. Measures with the same bins share one state."""
        outcomes = p.outcome.astype(np.float64)
        sums = {
            HISTOGRAM: score_sums(p.score, outcomes, w, HISTOGRAM_BINS, "right")[:3],
            RESIDUALS: row_sums(p.score - outcomes, w, clusters),
        }
        for stream in self._states():
            sums |= stream.add_up(p, w, clusters)
        return sums

    def _states(self) -> list[MeasureSums[Any]]:
        """One of the measures for each state that they read."""
        return list({stream.name: stream for stream in self._streams.values()}.values())

    def _add(self, sums: Mapping[str, Array]) -> None:
        for name, part in sums.items():
            self.sums[name] = self.sums[name] + part if name in self.sums else part

    def _remember(self, clusters: frozenset[int]) -> None:
        """Remember the names of clusters by their hashes, so that one that comes again is noticed."""
        if clusters & self.clusters:
            self.open_reason = self.open_reason or AGAIN
        self.clusters |= clusters
        if len(self.clusters) > MOST_NAMES:
            self.open_reason, self.clusters = self.open_reason or TOO_MANY_NAMES, frozenset()

    def _has_single_outcome(self) -> bool:
        count, _, outcomes = self.sums[HISTOGRAM]
        return float(outcomes.sum()) in (0.0, float(count.sum()))

    def _noise_of_extreme_share(self, value: float) -> Levels:
        """The noise of a share of 0 or 1: no row of the other kind was seen."""
        rows = self.total**2 / self.unit_square
        return Levels(
            values=np.array([value]),
            shares=np.ones(1),
            counts=np.array([rows]),
            unseen=(0.0, 1.0),
            rows=rows,
            method="Clopper and Pearson, for a share of 0 or 1",
        )

    def _too_few(self) -> str | None:
        """The reason for no interval; None where there are enough clusters, or rows by Kish's formula."""
        return too_few_rows(self.units if self.clustered else self.total**2 / self.square, clusters=self.clustered)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {HISTOGRAM: (3, HISTOGRAM_BINS), RESIDUALS: (3,)}
        for stream in self._states():
            shapes |= stream.shapes(self.k)
        return shapes
