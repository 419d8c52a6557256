"""Very many rows: reading, measuring and reporting two million predictions, in whole processes."""

import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks._data import overconfident
from benchmarks._page import Section, Target, show, table
from calibrant import Predictions

SIZE, SMOKE_SIZE = (2_000_000, 10), (3000, 4)
COMMANDS = {  # what is typed -> seconds promised
    ("measure", "test.parquet", "--stream"): 60.0,
    ("measure", "test.parquet", "-m", "ece"): 60.0,
    ("measure", "test.parquet"): 5.0,
    ("report", "test.parquet", "--out", "report.html"): 120.0,
    ("fit", "binary.parquet", "--with", "auto"): 20.0,
}
MOST_SECONDS = 900  # then the command is ended, and the target not met
WORDS = (
    "Whole commands on one Parquet file, once each. The report looks at a random half million of the rows and says so "
    "on its page. `binary.parquet` has as many rows with one score each; a random part of them decides which "
    "calibrator is best, and the result says so."
)


def run(*, smoke: bool) -> Section:
    n, k = SMOKE_SIZE if smoke else SIZE
    targets, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        data = overconfident(n, k)
        Predictions.from_logits(data.logits, data.labels).save(Path(folder, "test.parquet"))
        del data
        rng = np.random.default_rng(0)
        scores = rng.beta(1, 6, n)
        Predictions.binary(scores, rng.random(n) < scores**1.3).save(Path(folder, "binary.parquet"))
        for command, promised in COMMANDS.items():
            seconds, what = _seconds(command, folder), f"`calibrant {' '.join(command)}`"
            targets.append(Target(f"{what} of {n:,} rows", seconds, "most", promised, " s"))
            rows.append([what, f"**{show(seconds)} s**"])
    return Section(f"Large: {n:,} x {k}", WORDS, targets, [table(["command", "time"], rows)])


def _seconds(command: tuple[str, ...], folder: str) -> float:
    start = perf_counter()
    try:
        subprocess.run(
            [sys.executable, "-m", "calibrant", *command],
            cwd=folder,
            capture_output=True,
            check=True,
            timeout=MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return float("inf")
    return perf_counter() - start
