"""How long a reader waits for the page, how large it is, and how much memory it takes, in whole processes."""

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks._data import overconfident
from benchmarks._page import Section, Target, show, table

SIZES = {(10_000, 100): 3.0, (50_000, 1000): 15.0}  # rows x classes -> seconds promised
SMOKE_SIZES = {(200, 5): 3.0, (400, 10): 15.0}
MOST_MEGABYTES = 3.0
ROUNDS = 3
WORDS = (
    "`calibrant report test.npz --fit-on val.npz --out report.html` as a whole process: reading two files, fitting and "
    "judging calibrators, intervals, figures, writing the page. The best of three runs for the smaller size, one for "
    "the larger. Memory is the highest resident memory of the process and of the one that draws, added up."
)


def run(*, smoke: bool) -> Section:
    targets, rows = [], []
    for (n, k), promised in (SMOKE_SIZES if smoke else SIZES).items():
        seconds, megabytes, peak = _report(n, k, 1 if smoke or n > 10_000 else ROUNDS)
        size = f"{n:,} x {k}"
        targets.append(Target(f"a report of {size} predictions, fitted on as many", seconds, "most", promised, " s"))
        targets.append(Target(f"the page of {size} predictions", megabytes, "most", MOST_MEGABYTES, " MB"))
        rows.append([size, f"**{show(seconds)} s**", f"{show(megabytes)} MB", f"{show(peak)} MB"])
    return Section("Report", WORDS, targets, [table(["predictions", "time", "page", "peak memory"], rows)])


def _report(n: int, k: int, rounds: int) -> tuple[float, float, float]:
    """Best seconds, megabytes of the page, peak megabytes of the process."""
    with tempfile.TemporaryDirectory() as folder:
        for name, seed in (("val", 0), ("test", 1)):
            data = overconfident(n, k, seed=seed)
            np.savez(Path(folder, f"{name}.npz"), logits=data.logits, labels=data.labels)
            del data
        runs = [_run(folder) for _ in range(rounds)]
        size = Path(folder, "report.html").stat().st_size
    return min(seconds for seconds, _ in runs), size / 1e6, max(peak for _, peak in runs)


# The process tells its own peak: the one that wait4 tells includes the process that started it. That of the process it
# has started to draw, which has ended by then, is added.
COMMAND = """
import atexit, pathlib, resource
from calibrant.cli import main
def tell():
    own = int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    pathlib.Path("peak").write_text(str(own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
atexit.register(tell)
main()
"""


def _run(folder: str) -> tuple[float, float]:
    arguments = ["report", "test.npz", "--fit-on", "val.npz", "--out", "report.html"]
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return seconds, int(Path(folder, "peak").read_text()) * 1024 / 1e6
