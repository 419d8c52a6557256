"""The driver of a study: gives jobs that can begin to an executor and stores their outcomes; failures stop nothing."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from calibrant.core.lock import lock_folder
from calibrant.studying.job import Job, Outcome
from calibrant.studying.store import Journal, Store


class Executor(Protocol):
    """Interface of executors: local processes, Ray, or a shard."""

    slots: int  # how many may be under way

    def start(self, job: Job) -> None: ...

    def wait(self) -> list[Outcome]: ...

    def close(self) -> None: ...


@dataclass(kw_only=True)
class StudyProgress:
    """Progress of a study: counts of jobs, and the seconds that jobs of each kind took."""

    total: int
    done: int = 0
    failed: int = 0
    blocked: int = 0  # they need a job that failed
    reused: int = 0  # finished before, here or in another study
    began: float = field(default_factory=time.monotonic)
    last: Outcome | None = None

    @property
    def left(self) -> float | None:
        """Seconds until the end, by the jobs that were computed so far."""
        computed = self.done - self.reused
        spent = time.monotonic() - self.began
        return spent / computed * (self.total - self.done - self.failed - self.blocked) if computed else None


def run_jobs(
    jobs: Iterable[Job],
    store: Store,
    executor: Executor,
    *,
    driver: str = "driver",
    retry: bool = False,
    on_progress: Callable[[StudyProgress], None] | None = None,
) -> StudyProgress:
    """Compute missing jobs. Finished ones are kept whatever happens to the driver, a worker or the machine."""
    with lock_folder(store.folder / "journal" / driver):
        journal = Journal(store, driver)
        try:
            return _run(list(jobs), store, executor, journal, retry, on_progress or (lambda _: None))
        finally:
            executor.close()
            journal.close()


def _run(
    jobs: list[Job],
    store: Store,
    executor: Executor,
    journal: Journal,
    retry: bool,
    on_progress: Callable[[StudyProgress], None],
) -> StudyProgress:
    wanted = {job.key: job for job in jobs}
    done = store.done() & set(wanted)
    failed = set() if retry else set(store.failures()) & set(wanted)
    progress = StudyProgress(total=len(wanted), done=len(done), reused=len(done), failed=len(failed))
    missing: Counter[str] = Counter()
    after: dict[str, list[Job]] = {}
    ready: list[Job] = []
    for job in wanted.values():
        if job.key in done or job.key in failed:
            continue
        open_needs = {need.key for need in job.needs} - done
        missing[job.key] = len(open_needs)
        for key in open_needs:
            after.setdefault(key, []).append(job)
        if not open_needs:
            ready.append(job)
    progress.blocked = _drop_blocked(failed, after)
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
                progress.blocked += _drop_blocked({outcome.key}, after)
            else:
                progress.done += 1
                for job in reversed(after.pop(outcome.key, [])):  # taken from the end: in the order of the plan
                    missing[job.key] -= 1
                    if not missing[job.key]:
                        ready.append(job)
            progress.last = outcome
            on_progress(progress)
    return progress


def _drop_blocked(failed: set[str], after: dict[str, list[Job]]) -> int:
    """Drop the jobs that wait for these, directly or not, and count them."""
    seen: set[str] = set()
    keys = list(failed)
    while keys:
        for job in after.pop(keys.pop(), []):
            if job.key not in seen:
                seen.add(job.key)
                keys.append(job.key)
    return len(seen)
