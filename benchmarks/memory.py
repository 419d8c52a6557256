"""Peak memory of one measure on a large array, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks._data import overconfident
from benchmarks._page import Section, Target, show, table

SIZE, SMOKE_SIZE = (50_000, 1000), (2000, 50)
WHAT = ("ece", "classwise", "nll", "brier", "smooth", "standard")
ROOT = Path(__file__).parents[1]
WORDS = (
    "Highest resident memory of a fresh process, less what it held after its imports; the input itself counts. "
    "`standard` is the standard set of 13 measures. Values alone, without intervals."
)


def run(*, smoke: bool) -> Section:
    n, k = SMOKE_SIZE if smoke else SIZE
    input_bytes = 4 * n * k
    peaks = {what: _in_fresh_process(what, n, k) for what in WHAT}
    times = {what: peak / input_bytes for what, peak in peaks.items()}
    targets = [
        Target(f"peak memory of {what} at {n:,} x {k} float32, in sizes of the input", result, "most", 3.0)
        for what, result in times.items()
    ]
    rows = [[what, f"**{show(times[what])}**", f"<small>{peaks[what] / 1e6:,.0f} MB</small>"] for what in WHAT]
    head = ["measure", f"peak / input of {input_bytes / 1e6:,.0f} MB", "peak"]
    return Section("Memory", WORDS, targets, [table(head, rows)])


def _in_fresh_process(what: str, n: int, k: int) -> int:
    command = [sys.executable, "-m", "benchmarks.memory", what, str(n), str(k)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    return int(json.loads(done.stdout))


def _peak_of(what: str, n: int, k: int) -> int:
    """Runs in the fresh process."""
    from calibrant import Predictions, measure_all
    from calibrant.measuring.standard import STANDARD

    before = _forget_peak()
    data = overconfident(n, k)
    p = Predictions.from_logits(data.logits, data.labels)
    measure_all(p, STANDARD if what == "standard" else [what], resamples=0)
    return _status("VmHWM") - before


def _forget_peak() -> int:
    """Bytes held now. ru_maxrss will not do: a child inherits in it the peak of the process that started it."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(key: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(_peak_of(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
