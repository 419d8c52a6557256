"""What a watch knows of one segment: its evidence, the rows behind it, the first alarm, and the evidence over time."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.core import wording
from calibrant.core.arrays import Array, Ints
from calibrant.core.errors import visible
from calibrant.core.plain import plain
from calibrant.measuring import evidence
from calibrant.measuring.evidence import Mode

MOST_LOG = 300.0  # of a point, to the base of 10 and on either side: what a float can hold
MOST_POINTS = 256  # of the evidence over time that are kept
WORDS = {"binary": ("P(positive)", "positive")}  # what the score is called, and a hit


@dataclass(frozen=True)
class Alarm:
    """The evidence reached its limit after this row; `score` and `hit` are means over the segment's rows until then."""

    segment: str | None  # None: all rows
    row: int  # of all rows, counted from 1
    n: int  # rows of the segment until then
    evidence: float
    limit: float
    score: float
    hit: float
    side: str  # "too high" or "too low": what most of the evidence speaks of
    bin: int | None  # of ten equal-width bins of scores, where that is one of them
    shape: str

    def __str__(self) -> str:
        what, right = WORDS.get(self.shape, ("confidence", "right"))
        where = "" if self.segment is None else f" in segment {visible(self.segment)}"
        part = "" if self.bin is None else f" between {self.bin / 10:g} and {(self.bin + 1) / 10:g}"
        return (
            f"Alarm{where} at row {self.row:,}: {what}{part} is {self.side}. Over {wording.count(self.n, 'row')} it is "
            f"{wording.percent(self.score)} on average, and {wording.percent(self.hit)} are {right}. "
            f"Evidence {wording.significant(self.evidence)}, limit {wording.significant(self.limit)}."
        )

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = plain(self) | {"sentence": str(self)}
        return made


@dataclass(eq=False)
class Track:
    """One segment (or all rows) under watch."""

    place: int = 1  # all rows are first, then segments as they appear
    logs: Array = field(default_factory=evidence.start)
    n: int = 0
    score_sum: float = 0.0
    hit_sum: float = 0.0
    alarm: Alarm | None = None
    points: list[tuple[int, float]] = field(default_factory=list)  # rows and log10 of the evidence after them
    step: int = 1  # rows between two points

    @property
    def log_evidence(self) -> float:
        return evidence.log_evidence(self.logs)

    @property
    def evidence(self) -> float:
        """The average wealth of all bets; beyond 1e300 it is told as that."""
        return float(np.exp(min(self.log_evidence, 690.0)))

    def follow(self, score: Array, hit: Array, tolerance: float, mode: Mode, limit: float) -> int | None:
        """Go through these rows; the row (of these, from 0) at which the limit is reached for the first time."""
        path, logs = evidence.follow(self.logs, score, hit, tolerance, mode)
        reached = np.flatnonzero(path >= limit) if self.alarm is None else np.empty(0, dtype=np.int64)
        self._remember(path)
        self.logs = logs
        self.n += len(score)
        self.score_sum += float(score.sum())
        self.hit_sum += float(hit.sum())
        return int(reached[0]) if len(reached) else None

    def until(self, score: Array, hit: Array, tolerance: float, mode: Mode) -> "Track":
        """What would be known after these rows; this track is not changed."""
        made = Track(self.place, self.logs, self.n, self.score_sum, self.hit_sum)
        made.follow(score, hit, tolerance, mode, np.inf)
        return made

    def raised(self, segment: str | None, row: int, limit: float, shape: str) -> Alarm:
        """The alarm of the evidence as it is."""
        place, side = evidence.place_of_most(self.logs)
        return Alarm(
            segment,
            row,
            self.n,
            self.evidence,
            limit,
            self.score_sum / self.n,
            self.hit_sum / self.n,
            ("too high", "too low")[side],
            place - 1 if place else None,
            shape,
        )

    def merge(self, other: "Track") -> "Track":
        """The evidence of both: their rows are different ones, so their logarithms add up."""
        score_sum, hit_sum = self.score_sum + other.score_sum, self.hit_sum + other.hit_sum
        return Track(self.place, self.logs + other.logs, self.n + other.n, score_sum, hit_sum)

    def _remember(self, path: Array) -> None:
        """Every `step`-th row; twice as far apart when they become too many."""
        first = self.step - self.n % self.step  # so many rows from here
        at: Ints = np.arange(first, len(path) + 1, self.step)
        with np.errstate(divide="ignore"):
            logs = np.clip(np.log10(path[at - 1]), -MOST_LOG, MOST_LOG)
        self.points += zip((self.n + at).tolist(), logs.tolist(), strict=True)
        while len(self.points) > MOST_POINTS:
            self.step *= 2
            self.points = [point for point in self.points if point[0] % self.step == 0]
