"""One segment under watch: its evidence, the sums of its rows, its first alarm, and the evidence over time."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.config.convert import Bounds, Count
from calibrant.core.errors import visible
from calibrant.core.json import plain
from calibrant.core.predictions.row_data import Task
from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import vocabulary_of
from calibrant.monitoring import evidence
from calibrant.monitoring.evidence import Mode

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
    """The state of one segment, or of all rows, which is saved field by field."""

    order: Count = 1  # all rows are first, then segments as they appear
    log_wealth: Array = field(default_factory=evidence.start)
    n: Count = 0
    score_sum: float = 0.0
    outcome_sum: float = 0.0
    alarm: Alarm | None = None
    history: list[tuple[int, float]] = field(default_factory=list)  # number of rows, log10 of the evidence after them
    step: Annotated[int, Bounds(least=1)] = 1  # rows between two points of the history

    def __post_init__(self) -> None:
        if self.log_wealth.shape != evidence.SHAPE or not np.isfinite(self.log_wealth).all():
            raise ValueError("log_wealth is not that of the bets")

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
