"""One segment under watch: its evidence, the sums of its rows, its first alarm, and the evidence over time."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.config.convert import from_json
from calibrant.core.errors import visible
from calibrant.core.json import plain, read_typed
from calibrant.core.predictions.row_data import Task
from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import vocabulary_of
from calibrant.monitoring import evidence
from calibrant.monitoring.evidence import Mode
from calibrant.streaming.state import MOST_ROWS, SLACK

Side = Literal["too high", "too low"]

SIDES: tuple[Side, Side] = ("too high", "too low")
MOST_LOG10 = 300.0  # of a point of the history, on either side: what a float can hold
MOST_POINTS = 256  # of the history


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """The evidence of a segment reached its limit; `score` and `outcome` are means over its rows until then."""

    segment: str | None  # None: all rows
    row: int  # among the rows of all segments, counted from 1
    n: int  # rows of the segment until then
    evidence: float
    limit: float
    score: float
    outcome: float
    side: Side  # which error of the scores most of the evidence shows
    bin: int | None  # the one of ten equal-width bins of scores with most of the evidence; None: all rows together
    task: Task

    def __str__(self) -> str:
        words = vocabulary_of(self.task)
        where = "" if self.segment is None else f" in segment {visible(self.segment)}"
        part = "" if self.bin is None else f" between {self.bin / 10:g} and {(self.bin + 1) / 10:g}"
        return (
            f"Alarm{where} at row {self.row:,}: {words.score}{part} is {self.side}. Over {fmt.count(self.n, 'row')} it "
            f"is {fmt.percent(self.score)} on average, and {fmt.percent(self.outcome)} are {words.row_outcomes[1]}. "
            f"Evidence {fmt.significant(self.evidence)}, limit {fmt.significant(self.limit)}."
        )

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(self)) | {"sentence": str(self)}


@dataclass(eq=False, kw_only=True)
class SegmentState:
    """The state of one segment, or of all rows."""

    order: int = 1  # all rows are first, then segments as they appear
    log_wealth: Array = field(default_factory=evidence.start)
    n: int = 0
    score_sum: float = 0.0
    outcome_sum: float = 0.0
    alarm: Alarm | None = None
    history: list[tuple[int, float]] = field(default_factory=list)  # number of rows, log10 of the evidence after them
    step: int = 1  # rows between two points of the history

    @property
    def evidence(self) -> float:
        """The average wealth of all bets, at most 1e300."""
        return float(np.exp(min(evidence.log_evidence(self.log_wealth), 690.0)))

    def update(self, score: Array, outcome: Array, tolerance: float, mode: Mode, limit: float) -> int | None:
        """Add rows; return the one (of these, from 0) at which the evidence first reaches the limit."""
        path, log_wealth = evidence.follow(self.log_wealth, score, outcome, tolerance, mode)
        reached = np.flatnonzero(path >= limit) if self.alarm is None else np.empty(0, dtype=np.int64)
        self._extend_history(path)
        self.log_wealth = log_wealth
        self.n += len(score)
        self.score_sum += float(score.sum())
        self.outcome_sum += float(outcome.sum())
        return int(reached[0]) if len(reached) else None

    def copy(self) -> "SegmentState":
        """A copy of the evidence and sums, without alarm and history."""
        return SegmentState(
            order=self.order,
            log_wealth=self.log_wealth,
            n=self.n,
            score_sum=self.score_sum,
            outcome_sum=self.outcome_sum,
        )

    def raise_alarm(self, name: str | None, row: int, limit: float, task: Task) -> Alarm:
        """Build the alarm for the present evidence."""
        place, side = evidence.place_of_most(self.log_wealth)
        return Alarm(
            segment=name,
            row=row,
            n=self.n,
            evidence=self.evidence,
            limit=limit,
            score=self.score_sum / self.n,
            outcome=self.outcome_sum / self.n,
            side=SIDES[side],
            bin=place - 1 if place else None,
            task=task,
        )

    def merge(self, other: "SegmentState") -> "SegmentState":
        """A segment of the rows of both: the rows differ, so the wealth of their bets multiplies."""
        return SegmentState(
            order=self.order,
            log_wealth=self.log_wealth + other.log_wealth,
            n=self.n + other.n,
            score_sum=self.score_sum + other.score_sum,
            outcome_sum=self.outcome_sum + other.outcome_sum,
        )

    # -- saving and loading ---------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.n,
            "sum_of_scores": self.score_sum,
            "sum_of_outcomes": self.outcome_sum,
            "alarm": plain(self.alarm),
            "history": plain(self.history),
            "rows_between_points": self.step,
            "log_wealth": self.log_wealth.tolist(),
        }

    @classmethod
    def from_dict(cls, state: Any, order: int, mode: Mode) -> "SegmentState":
        """Read what `to_dict` wrote; a ValueError or KeyError says what does not fit together."""
        n, step = read_typed(state, "rows", int), read_typed(state, "rows_between_points", int)
        score_sum, outcome_sum = read_number(state, "sum_of_scores"), read_number(state, "sum_of_outcomes")
        slack = SLACK * (1 + n)
        if not (0 <= n <= MOST_ROWS and -slack <= score_sum <= n + slack and 0 <= outcome_sum <= n and step >= 1):
            raise ValueError(f"sums of {outcome_sum:g} outcomes and {score_sum:g} scores in {n} rows")
        alarm = None if state["alarm"] is None else from_json(Alarm, state["alarm"])
        if alarm is not None and not (1 <= alarm.n <= n and alarm.n <= alarm.row):
            raise ValueError("an alarm after the last row")
        return cls(
            order=order,
            log_wealth=_read_log_wealth(state, n, mode),
            n=n,
            score_sum=score_sum,
            outcome_sum=outcome_sum,
            alarm=alarm,
            history=_read_history(state, n),
            step=step,
        )

    def _extend_history(self, path: Array) -> None:
        """Keep every `step`-th row; twice the distance when there are too many points."""
        first = self.step - self.n % self.step  # rows from here to the next point
        at: Ints = np.arange(first, len(path) + 1, self.step)
        with np.errstate(divide="ignore"):
            logs = np.clip(np.log10(path[at - 1]), -MOST_LOG10, MOST_LOG10)
        self.history += zip((self.n + at).tolist(), logs.tolist(), strict=True)
        while len(self.history) > MOST_POINTS:
            self.step *= 2
            self.history = [point for point in self.history if point[0] % self.step == 0]


def read_number(state: Any, name: str) -> float:
    """A number of a JSON object, as a float."""
    value = state[name]
    if type(value) not in (int, float):
        raise ValueError(f"{name} is {value!r:.40}")
    return float(value)


def _read_log_wealth(state: Any, n: int, mode: Mode) -> Array:
    logs = np.array(read_typed(state, "log_wealth", list), dtype=np.float64)
    if logs.shape != evidence.SHAPE or not np.isfinite(logs).all() or (n == 0 and logs.any()):
        raise ValueError("log_wealth is not that of the bets")
    sums_up = np.abs(logs[0] - logs[1:].sum(axis=0)).max() <= SLACK * (1 + np.abs(logs).max())
    if mode == "anytime" and not sums_up:
        raise ValueError("log_wealth of the bins does not add up to that of all rows")
    return logs


def _read_history(state: Any, n: int) -> list[tuple[int, float]]:
    history = [(row, float(log)) for row, log in read_typed(state, "history", list)]
    rows = [row for row, _ in history]
    if any(not abs(log) <= MOST_LOG10 for _, log in history):
        raise ValueError("evidence in the history is out of range")
    if any(type(row) is not int for row in rows) or rows != sorted(set(rows)) or any(not 1 <= row <= n for row in rows):
        raise ValueError("points of the history are not in the order of their rows")
    return history
