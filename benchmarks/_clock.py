"""Timing side by side: every round runs everyone once, and the best time of each counts."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter

from calibrant.core.curves.native import VARIABLE

Call = Callable[[], float]

OURS = "calibrant"
NUMPY = "calibrant, numpy passes"  # ours, without the compiled passes


@dataclass(frozen=True)
class Effort:
    """How long a race may take."""

    rounds: int
    seconds: float  # after two runs and this much time of its own an entry stops, or after one run of thrice that
    in_a_row: int = 1  # runs of an entry in each round: the first finds the caches as the entry before it left them


@dataclass
class Lap:
    """The best time of one entry, and the number it computed."""

    best: float = float("inf")
    number: float = float("nan")
    runs: int = 0
    used: float = 0.0
    note: str = ""  # why there is no time

    @property
    def ran(self) -> bool:
        return self.best < float("inf")


def race(entries: Mapping[str, Call], effort: Effort, *, turn: Callable[[int], None] | None = None) -> dict[str, Lap]:
    """Entries in turn, round by round, so that noise of the machine hits all of them alike."""
    laps = {name: Lap() for name in entries}
    for number in range(effort.rounds):
        if turn:
            turn(number)
        for name, call in entries.items():
            for _ in range(effort.in_a_row):
                if not _done(laps[name], effort):
                    _run(name, call, laps[name])
    return laps


def fastest(laps: Mapping[str, Lap]) -> str | None:
    """The name with the best time, leaving us out; None where nobody ran."""
    times = {name: lap.best for name, lap in laps.items() if lap.ran and name not in (OURS, NUMPY)}
    return min(times, key=times.__getitem__) if times else None


def with_numpy(call: Call) -> Call:
    """The same call without the compiled passes."""

    def switched() -> float:
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = "0"
        try:
            return call()
        finally:
            os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})

    return switched


def _done(lap: Lap, effort: Effort) -> bool:
    if lap.note or lap.runs == 0:
        return bool(lap.note)
    return lap.used >= effort.seconds * (3 if lap.runs == 1 else 1)


def _run(name: str, call: Call, lap: Lap) -> None:
    start = perf_counter()
    try:
        lap.number = float(call())
    except Exception as error:  # a peer that cannot do it is a result too
        if name in (OURS, NUMPY):
            raise
        lap.note = f"fails: {type(error).__name__}: {error}"
        return
    took = perf_counter() - start
    lap.runs += 1
    lap.used += took
    lap.best = min(lap.best, took)
