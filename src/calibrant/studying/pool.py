"""A pool of processes on this machine: a worker that dies or hangs costs its job, never the study.

Written by hand because a dead worker breaks the whole pool of concurrent.futures and loky, and neither can stop one job
that hangs.
"""

import contextlib
import math
import multiprocessing
import os
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from calibrant.core.parallel import cores
from calibrant.studying.job import Job, Outcome
from calibrant.studying.run_job import do, use_one_thread

TRIES = 2  # a worker that was killed from outside took its job with it once


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job | None = None
    began: float = math.inf  # a process that has not come up yet has begun nothing
    ready: bool = False


class LocalPool:
    """A pool of processes, by default one per core, each with one thread: the same sums wherever jobs run."""

    def __init__(self, folder: Path, workers: int = 0, *, limit: float = 0.0) -> None:
        self.folder, self.limit = folder, limit
        self.slots = workers or cores()
        self._workers: list[_Worker] = []
        self._tries: dict[str, int] = {}

    def start(self, job: Job) -> None:
        """Give a job to a free worker; there is one while fewer than `slots` are under way."""
        free = next((w for w in self._workers if w.job is None), None)
        if free is None:
            free = self._start()
            self._workers.append(free)
        free.job, free.began = job, time.monotonic() if free.ready else math.inf
        self._tries[job.key] = self._tries.get(job.key, 0) + 1
        with contextlib.suppress(OSError):  # it has just died: `wait` sees that
            free.pipe.send(job)

    def wait(self) -> list[Outcome]:
        """Outcomes of jobs that have ended, at least one; jobs of dead workers are tried again first."""
        while True:
            busy = [w for w in self._workers if w.job is not None]
            wait([w.pipe for w in busy] + [w.process.sentinel for w in busy], timeout=self._patience(busy))
            outcomes = [outcome for w in busy if (outcome := self._look(w)) is not None]
            if outcomes:
                return outcomes

    def close(self) -> None:
        for w in self._workers:
            w.process.kill() if w.job is not None else w.pipe.close()
        for w in self._workers:
            w.process.join(timeout=5)
        self._workers = []

    def _look(self, w: _Worker) -> Outcome | None:
        job = w.job
        assert job is not None
        try:
            if w.pipe.poll():
                outcome: Outcome | None = w.pipe.recv()
                if outcome is None:
                    w.ready, w.began = True, time.monotonic()
                    return None
                w.job = None
                self._tries.pop(job.key, None)
                return outcome
        except (EOFError, OSError):
            pass
        seconds = max(0.0, time.monotonic() - w.began)
        late = self.limit > 0 and seconds > self.limit
        if not late and w.process.is_alive():
            return None
        w.process.kill()
        w.process.join()
        self._workers.remove(w)
        if late:
            return Outcome(job.key, job.kind, failed=f"stopped at the time limit of {self.limit:g} s", seconds=seconds)
        if self._tries[job.key] < TRIES:
            self.start(job)
            return None
        code = w.process.exitcode
        why = f"signal {-code} (killed, or out of memory)" if code is not None and code < 0 else f"exit code {code}"
        return Outcome(job.key, job.kind, failed=f"its process ended with {why}, {TRIES} times", seconds=seconds)

    def _patience(self, busy: list[_Worker]) -> float | None:
        if not self.limit:
            return None
        first = min(w.began for w in busy)
        return None if first == math.inf else max(0.05, first + self.limit - time.monotonic())

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, str(self.folder)), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)


def _serve(pipe: Connection, folder: str) -> None:
    """Worker loop: take jobs and send outcomes, until the driver is gone."""
    use_one_thread()
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        pipe.send(None)  # the time of the first job counts from here
        while True:
            pipe.send(do(pipe.recv(), folder))


def _watch(parent: int) -> None:
    """End the worker when its driver is gone: the next driver will begin its job."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
