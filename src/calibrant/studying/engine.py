"""The driver: gives units that can begin to an executor, keeps what comes back, and stops for nothing."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from calibrant.core.lock import locked
from calibrant.studying.store import Journal, Store
from calibrant.studying.unit import Outcome, Unit


class Executor(Protocol):
    """Where units run."""

    slots: int  # how many may be under way

    def start(self, unit: Unit) -> None: ...

    def wait(self) -> list[Outcome]: ...

    def close(self) -> None: ...


@dataclass
class Standing:
    """How far a study is: counts of units, and the seconds that units of each kind took."""

    total: int
    done: int = 0
    failed: int = 0
    blocked: int = 0  # they need a unit that failed
    reused: int = 0  # finished before, here or in another study
    began: float = field(default_factory=time.monotonic)
    last: Outcome | None = None

    @property
    def left(self) -> float | None:
        """Seconds until the end, by the units that were computed so far."""
        computed = self.done - self.reused
        spent = time.monotonic() - self.began
        return spent / computed * (self.total - self.done - self.failed - self.blocked) if computed else None


def run_units(
    units: Iterable[Unit],
    store: Store,
    executor: Executor,
    *,
    driver: str = "driver",
    retry: bool = False,
    on_progress: Callable[[Standing], None] | None = None,
) -> Standing:
    """Compute what is missing. Finished units are kept whatever happens to the driver, a worker or the machine."""
    with locked(store.folder / "journal" / driver):
        journal = Journal(store, driver)
        try:
            return _run(list(units), store, executor, journal, retry, on_progress or (lambda _: None))
        finally:
            executor.close()
            journal.close()


def _run(
    units: list[Unit],
    store: Store,
    executor: Executor,
    journal: Journal,
    retry: bool,
    on_progress: Callable[[Standing], None],
) -> Standing:
    wanted = {unit.key: unit for unit in units}
    done = store.done() & set(wanted)
    failed = set() if retry else set(store.failures()) & set(wanted)
    progress = Standing(len(wanted), done=len(done), reused=len(done), failed=len(failed))
    missing: Counter[str] = Counter()
    after: dict[str, list[Unit]] = {}
    ready: list[Unit] = []
    for unit in wanted.values():
        if unit.key in done or unit.key in failed:
            continue
        open_needs = {need.key for need in unit.needs} - done
        missing[unit.key] = len(open_needs)
        for key in open_needs:
            after.setdefault(key, []).append(unit)
        if not open_needs:
            ready.append(unit)
    progress.blocked = _blocked(failed, after)
    ready.reverse()  # taken from the end
    on_progress(progress)
    running = 0
    while ready or running:
        while ready and running < executor.slots:
            executor.start(ready.pop())
            running += 1
        for outcome in executor.wait():
            running -= 1
            journal.add(outcome)
            if outcome.failed:
                progress.failed += 1
                progress.blocked += _blocked({outcome.key}, after)
            else:
                progress.done += 1
                for unit in after.pop(outcome.key, []):
                    missing[unit.key] -= 1
                    if not missing[unit.key]:
                        ready.append(unit)
            progress.last = outcome
            on_progress(progress)
    return progress


def _blocked(failed: set[str], after: dict[str, list[Unit]]) -> int:
    """How many units wait for these, directly or not; they are waited for no longer."""
    seen: set[str] = set()
    keys = list(failed)
    while keys:
        for unit in after.pop(keys.pop(), []):
            if unit.key not in seen:
                seen.add(unit.key)
                keys.append(unit.key)
    return len(seen)
