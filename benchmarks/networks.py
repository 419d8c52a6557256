"""Networks of a space trained and measured as jobs: what a second worker brings."""

import tempfile
from pathlib import Path
from time import monotonic

from benchmarks._page import Section, Target, show, table
from calibrant.core.nats import BEST
from calibrant.nas.build_table import scale_space, train_job
from calibrant.studying.engine import StudyProgress, run_jobs
from calibrant.studying.pool import LocalPool
from calibrant.studying.store import Store

DATA = "fashion_mini:shrink=2"
WORDS = (
    "One network of the topology space, NATS-Bench's best cell, at the scale of `calibrant nas train --scale small` (a "
    "smoke run: smaller), trained and measured from several seeds by one worker of one thread and by two. The first "
    "network of each worker, which loads everything, does not count. All cost the same, so no worker waits for another."
)


def run(*, smoke: bool) -> Section:
    count, scale = (4, "smoke") if smoke else (8, "small")
    rates = {workers: _rate(count, scale, workers) for workers in (1, 2)}
    gain = rates[2] / rates[1]
    targets = [Target("networks trained by two workers, times one worker's", gain, "least", 1.8)]
    rows = [[str(workers), f"**{show(60 * rate)}**"] for workers, rate in rates.items()]
    return Section("Networks trained", WORDS, targets, [table(["workers", "networks a minute"], rows)])


def _rate(count: int, scale: str, workers: int) -> float:
    """Networks a second after the warm-up; every worker count trains the same ones."""
    ends: list[float] = []

    def note(p: StudyProgress) -> None:
        if p.last is not None:
            ends.append(monotonic())

    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(place))
        space = scale_space("topology", scale)
        jobs = [train_job(space, BEST, DATA, scale, seed=seed) for seed in range(count)]
        run_jobs(jobs, store, LocalPool(store.folder, workers), on_progress=note)
    return (len(ends) - workers) / (ends[-1] - ends[workers - 1])
