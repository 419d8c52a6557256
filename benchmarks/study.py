"""The engine of studies: what it costs by itself, and whether it uses the cores."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks._page import Section, Target, show, table
from benchmarks.memory import _forget_peak, _status

ROOT = Path(__file__).parents[1]
PACKAGE = str(ROOT / "tests" / "job_package")  # the job "nothing", here and in workers
sys.path.insert(0, PACKAGE)
os.environ["PYTHONPATH"] = os.pathsep.join([PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])])  # workers of Ray
JOBS, FEW, BUSY = 10_000, 1_000, 40
SECONDS = 0.25  # of processor time in a busy job
ROWS, IN_A_JOB, PARTS = 1_000_000, 100, 10
WORDS = (
    "Jobs that do nothing: the driver, a pipe or Ray, and a line in the journal for each, after the processes are up. "
    "Busy jobs take a quarter of a second of processor time each, with one worker and with two. One million rows, 100 "
    "of a job, are read back from their parts and asked for the mean of a group. Memory is the highest of a fresh "
    "driver, less what it held before."
)


def run(*, smoke: bool) -> Section:
    section = Section("Studies", WORDS)
    jobs = 40 if smoke else JOBS
    local = _overhead(jobs, "local:1")
    lines = [["local, one worker", show(1000 * local)]]
    section.targets.append(Target("a job that does nothing, locally", 1000 * local, "most", 5.0, " ms"))
    if find_spec("ray") is not None and not smoke:
        on_ray = _overhead(jobs, "ray")
        lines.append(["Ray", show(1000 * on_ray)])
        section.targets.append(Target("a job that does nothing, on Ray", 1000 * on_ray, "most", 20.0, " ms"))
    section.tables.append(table([f"overhead of a job, {jobs:,} of them", "ms"], lines))

    busy = 4 if smoke else BUSY
    one, two = (_busy(busy, workers) for workers in (1, 2))
    section.targets.append(Target("two workers, of one", one / two, "least", 1.8))
    rows = 10_000 if smoke else ROWS
    collected = _collect(rows)
    section.targets.append(Target(f"collect {rows:,} rows and answer a query", collected, "most", 2.0, " s"))
    counts = (40, 80) if smoke else (FEW, JOBS)
    peaks = [_in_fresh_process(count) for count in counts]
    share = peaks[1] / peaks[0]
    what = f"memory of the driver, {counts[1]:,} jobs of {counts[0]:,}"
    section.targets.append(Target(what, share, "most", 1.5))
    section.tables.append(
        table(
            ["", "found"],
            [
                [f"{busy} busy jobs, one worker, s", show(one)],
                [f"{busy} busy jobs, two workers, s", show(two)],
                [f"{rows:,} rows and a query, s", show(collected)],
                *([f"driver with {n:,} jobs, MB", show(peak / 1e6)] for n, peak in zip(counts, peaks, strict=True)),
            ],
        )
    )
    return section


def _overhead(count: int, on: str) -> float:
    """Seconds a job, of jobs that do nothing, after a few that brought the processes up."""
    from calibrant.studying.engine import run_jobs
    from calibrant.studying.executors import executor_for
    from calibrant.studying.job import Job
    from calibrant.studying.store import Store

    with TemporaryDirectory() as folder:
        store, began = Store(folder), list[float]()
        warm, jobs = ([Job("nothing", {"number": n}) for n in numbers] for numbers in (range(8), range(8, 8 + count)))
        executor, _, driver = executor_for(on, [], store, 0.0)

        def look(standing: object) -> None:
            if getattr(standing, "done", 0) >= len(warm) and not began:
                began.append(perf_counter())

        ended = run_jobs([*warm, *jobs], store, executor, driver=driver, on_progress=look)
        assert ended.done == len(warm) + count
        return (perf_counter() - began[0]) / count


def _busy(count: int, workers: int) -> float:
    """Seconds from the first outcome to the last, of jobs that compute."""
    from calibrant.studying.engine import run_jobs
    from calibrant.studying.job import Job
    from calibrant.studying.pool import LocalPool
    from calibrant.studying.store import Store

    with TemporaryDirectory() as folder:
        jobs = [Job("nothing", {"number": n, "busy": SECONDS}) for n in range(count)]
        warm = [Job("nothing", {"number": n, "seconds": 1.0}) for n in range(workers)]  # each worker takes one
        began: list[float] = []

        def look(standing: object) -> None:
            if getattr(standing, "done", 0) >= len(warm) and not began:
                began.append(perf_counter())

        run_jobs([*warm, *jobs], Store(folder), LocalPool(Path(folder), workers), on_progress=look)
        return perf_counter() - began[0]


def _collect(rows: int) -> float:
    import polars as pl

    from calibrant.studying.store import Store

    with TemporaryDirectory() as folder:
        store, jobs, part = Store(folder), rows // IN_A_JOB, rows // PARTS
        place = Path(folder) / "rows" / "nothing"
        place.mkdir(parents=True)
        numbers = pl.int_range(rows, eager=True)
        whole = pl.DataFrame(
            {"job": (numbers // IN_A_JOB).cast(pl.String), "value": numbers * 0.5, "group": numbers % 7}
        )
        for n in range(PARTS):
            whole.slice(n * part, part).write_parquet(place / f"part-{n}.parquet")
        start = perf_counter()
        result = store.rows("nothing", {str(n) for n in range(jobs)})
        means = result.group_by("group").agg(pl.col("value").mean())
        assert (result.height, means.height) == (rows, 7)
        return perf_counter() - start


def _in_fresh_process(count: int) -> int:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.study", str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600)
    return int(json.loads(done.stdout))


def _peak_of(count: int) -> int:
    """Runs in the fresh process: what the driver itself takes, beside one worker."""
    before = _forget_peak()
    _overhead(count, "local:1")
    return _status("VmHWM") - before


if __name__ == "__main__":
    print(_peak_of(int(sys.argv[1])))
