"""Watch a stream for miscalibration: an alarm whose error rate holds however often one looks."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.arrays import Array, Ints, rows_of
from calibrant.core.config.convert import from_json, read_value
from calibrant.core.errors import InputError, unknown_name, visible
from calibrant.core.files import write_text
from calibrant.core.json import load_state, parse_state, plain, whole, write_state
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.text import number_format as fmt
from calibrant.core.text.table import html_table
from calibrant.core.text.vocabulary import describe_task
from calibrant.measures import check_predictions
from calibrant.monitoring.evidence import Mode
from calibrant.monitoring.segment import Alarm, SegmentState
from calibrant.streaming.cursor import Cursor, merge_cursors
from calibrant.streaming.prometheus import Gauge, Labels, exposition

VERSION = 3  # of the state on disk
DEFAULT_ALPHA: dict[str, float] = {"anytime": 0.05, "change": 1e-4}
FIX = "start a new watch"


class Watch:
    """Evidence after every row against "every score is right up to a tolerance", in a state of fixed size.

    In mode "anytime" the probability that a watch of calibrated scores ever raises an alarm is at most alpha, however
    long it runs and however often one looks. In mode "change" a false alarm comes after 1/alpha rows or more on
    average, and a change after a long calibrated period is detected sooner.

    With `segments` (True for every group of the predictions as it appears, or the names of some) each segment is
    watched too, and alpha is shared: named segments and all rows get alpha / (number + 1) each; otherwise all rows get
    alpha / 2 and the j-th segment to appear alpha / ((j + 1) (j + 2)).

    >>> watch = Watch(tolerance=0.02)
    >>> watch.update(Predictions.from_confidence([0.9, 0.8, 0.7, 0.95], correct=[1, 0, 1, 0]))
    >>> round(watch.evidence, 8), watch.alarm is None
    (0.99414501, True)
    """

    def __init__(
        self,
        *,
        tolerance: float = 0.02,
        alpha: float | None = None,
        mode: Mode = "anytime",
        segments: bool | Sequence[str] = False,
    ) -> None:
        if mode not in DEFAULT_ALPHA:
            raise unknown_name("mode", str(mode), DEFAULT_ALPHA)
        if not 0 <= tolerance < 1:
            expected, fix = "a share from 0 to below 1", "use 0.02 for two points"
            raise InputError("tolerance", expected=expected, got=f"{tolerance:g}", fix=fix)
        self.tolerance, self.alpha = float(tolerance), _check_alpha(DEFAULT_ALPHA[mode] if alpha is None else alpha)
        self.mode: Mode = mode
        self.task: Task | None = None  # None before the first rows
        self.named = _segment_names(segments) if not isinstance(segments, bool) else None
        self.by_segment = self.named is not None or bool(segments)
        self.segments: dict[str | None, SegmentState] = {}  # None: all rows
        for name in (None, *(self.named or ())):
            self._add_segment(name)
        self.files: dict[str, Cursor] = {}  # how far each file has been read

    # -- adding rows ----------------------------------------------------------------------------

    def update(self, p: Predictions | None) -> None:
        """Add rows, one or many; None adds nothing."""
        if p is None:
            return
        self._check(p)
        first, score, outcome = self.n, p.score, p.outcome.astype(np.float64)
        self._update_segment(None, score, outcome, np.arange(first, first + p.n))
        if self.by_segment and p.groups is not None:
            for name, rows in rows_of(p.groups).items():
                self._update_segment(name, score[rows], outcome[rows], first + rows)

    def merge(self, other: "Watch") -> "Watch":
        """A new watch of the rows of both; neither is changed.

        Its alarms come from the evidence of both together. Alarms that only one of the two raised are not copied.
        """
        if self.mode == "change" or other.mode == "change":
            expected, fix = 'watches with mode="anytime"', "watch the rows in their order, in one place"
            raise InputError("merge", expected=expected, got="one that looks for a change", fix=fix)
        mine, theirs = ((w.tolerance, w.alpha, w.by_segment, w.named) for w in (self, other))
        if mine != theirs:
            fix = "build both with the same tolerance, alpha and segments"
            raise InputError("merge", expected=f"the same options ({mine})", got=str(theirs), fix=fix)
        both = Watch(tolerance=self.tolerance, alpha=self.alpha, segments=self.named or self.by_segment)
        for part in (self, other):
            both._check_task(part.task)
            for name, segment in part.segments.items():
                if name not in both.segments:
                    both._add_segment(name)
                both.segments[name] = both.segments[name].merge(segment)
        for name, segment in both.segments.items():
            if both.task and segment.n and segment.evidence >= both.limit(name):
                segment.alarm = segment.raise_alarm(name, both.n, both.limit(name), both.task)
        both.files = merge_cursors(self.files, other.files)
        return both

    # -- results --------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        return self.segments[None].n

    @property
    def evidence(self) -> float:
        """The evidence of all rows, whatever their segment."""
        return self.segments[None].evidence

    @property
    def alarms(self) -> list[Alarm]:
        """The first alarm of each segment, in the order in which they were raised."""
        alarms = [segment.alarm for segment in self.segments.values() if segment.alarm is not None]
        return sorted(alarms, key=lambda alarm: alarm.row)

    @property
    def alarm(self) -> Alarm | None:
        return next(iter(self.alarms), None)

    def limit(self, segment: str | None = None) -> float:
        """The evidence at which a segment (or all rows) raises an alarm."""
        if self.named is not None:
            return (len(self.named) + 1) / self.alpha
        if not self.by_segment:
            return 1 / self.alpha
        order = self.segments[segment].order
        return order * (order + 1) / self.alpha

    def history(self, segment: str | None = None) -> list[dict[str, float]]:
        """The evidence over time, at most 256 points: rows of the segment, evidence after them, limit."""
        limit = self.limit(segment)
        return [{"row": row, "evidence": 10.0**log, "limit": limit} for row, log in self.segments[segment].history]

    def __str__(self) -> str:
        if self.alarms:
            return "\n".join(map(str, self.alarms))
        name, segment = max(self.segments.items(), key=lambda item: item[1].evidence / self.limit(item[0]))
        where = "" if name is None else f" in segment {visible(name)}"
        among = f" and {fmt.count(len(self.segments) - 1, 'segment')}" if self.by_segment else ""
        return (
            f"No alarm after {fmt.count(self.n, 'row')}{among}: evidence {fmt.significant(segment.evidence)}"
            f"{where}, an alarm needs {fmt.significant(self.limit(name))}."
        )

    def _repr_html_(self) -> str:
        head = ("segment", "rows", "evidence", "limit", "alarm at row")
        rows = [
            (
                "all rows" if name is None else visible(name),
                f"{segment.n:,}",
                fmt.significant(segment.evidence),
                fmt.significant(self.limit(name)),
                "" if segment.alarm is None else f"{segment.alarm.row:,}",
            )
            for name, segment in self.segments.items()
        ]
        return html_table(str(self), head, rows)

    def to_dict(self) -> dict[str, Any]:
        """The state for JSON: whether there is an alarm, the alarms, and the evidence of every segment."""
        state = {
            "alarm": bool(self.alarms),
            "sentence": str(self),
            "n": self.n,
            "mode": self.mode,
            "tolerance": self.tolerance,
            "alpha": self.alpha,
            "alarms": [alarm.to_dict() for alarm in self.alarms],
            "segments": [
                {"segment": name, "n": segment.n, "evidence": segment.evidence, "limit": self.limit(name)}
                for name, segment in self.segments.items()
            ],
        }
        return dict(plain(state))

    def to_prometheus(self) -> str:
        """Rows, evidence, limit, alarm, mean score and mean outcome, of all rows and by segment, for Prometheus."""
        values: dict[str, tuple[str, Callable[[SegmentState], float | None]]] = {
            "rows": ("rows watched", lambda segment: segment.n),
            "evidence": ("evidence against calibration", lambda segment: segment.evidence),
            "alarm": ("1 after an alarm, else 0", lambda segment: int(segment.alarm is not None)),
            "mean_score": ("mean score", lambda segment: segment.score_sum / segment.n if segment.n else None),
            "mean_outcome": ("mean outcome", lambda segment: segment.outcome_sum / segment.n if segment.n else None),
        }
        labels: dict[str | None, Labels] = {name: {} if name is None else {"segment": name} for name in self.segments}
        gauges = [
            Gauge(
                f"calibrant_watch_{name}",
                words,
                [
                    (labels[key], value)
                    for key, segment in self.segments.items()
                    if (value := read(segment)) is not None
                ],
            )
            for name, (words, read) in values.items()
        ]
        limits = [(labels[key], self.limit(key)) for key in self.segments]
        return exposition([*gauges, Gauge("calibrant_watch_limit", "evidence that raises an alarm", limits)])

    # -- saving and loading ---------------------------------------------------------------------

    def to_json(self) -> str:
        state = {
            "mode": self.mode,
            "tolerance": self.tolerance,
            "alpha": self.alpha,
            "segments": self.by_segment if self.named is None else list(self.named),
            "task": self.task,
            "files": plain(self.files),
            "evidence": [{"segment": name, **plain(segment)} for name, segment in self.segments.items()],
        }
        return write_state("watch", VERSION, state)

    @classmethod
    def from_json(cls, text: str) -> "Watch":
        """Read what `to_json` wrote; a state that is damaged is an InputError."""
        state = parse_state(text, "watch", VERSION, written_by="Watch.save", fix=FIX)
        with whole("watch", fix=FIX):
            watch = cls(
                tolerance=read_value(float, state["tolerance"], "tolerance"),
                alpha=read_value(float, state["alpha"], "alpha"),
                mode=read_value(Mode, state["mode"], "mode"),
                segments=read_value(bool | list[str], state["segments"], "segments"),
            )
            watch.task = read_value(Task | None, state["task"], "task")
            watch.files = read_value(dict[str, Cursor], state["files"], "files")
            for segment in read_value(list[dict[str, Any]], state["evidence"], "evidence"):
                name = read_value(str | None, segment.pop("segment"), "segment")
                watch.segments[name] = from_json(SegmentState, segment)
            return watch

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> "Watch":
        return load_state(path, cls.from_json, expected="a saved watch")

    # -- private --------------------------------------------------------------------------------

    def _check(self, p: Predictions) -> None:
        check_predictions(p)
        if p.weights is not None or p.row_data.clusters is not None:  # a cluster may continue in the next batch
            got = "weights" if p.weights is not None else "clusters"
            fix = "watch rows that come one by one: without weights, and one row of each cluster"
            raise InputError("watch", expected="rows that each count once", got=got, fix=fix)
        if self.by_segment and p.groups is None:
            fix = "give groups with the predictions, or watch without segments"
            raise InputError("watch", expected="the group of every row", got="predictions without groups", fix=fix)
        self._check_task(p.task)

    def _check_task(self, task: Task | None) -> None:
        if task and self.task and self.task != task:
            expected, fix = f"{describe_task(self.task)} as before", "use one watch for each task"
            raise InputError("watch", expected=expected, got=describe_task(task), fix=fix)
        self.task = task or self.task

    def _update_segment(self, name: str | None, score: Array, outcome: Array, rows: Ints) -> None:
        if name not in self.segments:
            if self.named is not None:
                return  # its rows count among all rows only
            self._add_segment(name)
        segment, limit = self.segments[name], self.limit(name)
        before = segment.copy()
        at = segment.update(score, outcome, self.tolerance, self.mode, limit)
        if at is not None and self.task:  # rows have a task
            before.update(score[: at + 1], outcome[: at + 1], self.tolerance, self.mode, np.inf)
            segment.alarm = before.raise_alarm(name, int(rows[at]) + 1, limit, self.task)

    def _add_segment(self, name: str | None) -> None:
        self.segments[name] = SegmentState(order=1 + len(self.segments))


def watch(
    p: Predictions,
    *,
    tolerance: float = 0.02,
    alpha: float | None = None,
    mode: Mode = "anytime",
    segments: bool | Sequence[str] = False,
) -> Watch:
    """Watch these predictions in their order; `update` the result with rows that come later.

    >>> print(watch(Predictions.from_confidence([0.9, 0.8, 0.7, 0.95], correct=[1, 0, 1, 0])))
    No alarm after 4 rows: evidence 0.9941, an alarm needs 20.
    """
    watch = Watch(tolerance=tolerance, alpha=alpha, mode=mode, segments=segments)
    watch.update(p)
    return watch


def _check_alpha(alpha: float) -> float:
    if not 0 < alpha < 1:
        fix = f"write {alpha / 100:g} for {alpha:g} %" if 1 <= alpha < 100 else "use 0.05"
        raise InputError("alpha", expected="a share strictly between 0 and 1", got=f"{alpha:g}", fix=fix)
    return float(alpha)


def _segment_names(segments: Sequence[str]) -> tuple[str, ...]:
    names = tuple(map(str, segments))
    if not names or len(set(names)) != len(names):
        got = "none" if not names else "a name twice"
        raise InputError("segments", expected="different names", got=got, fix="name each once, or use True")
    return names
