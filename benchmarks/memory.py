"""Peak memory of one measure on a large array, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks._data import overconfident
from benchmarks._page import Section, Target, show, table

SIZE, SMOKE_SIZE = (50_000, 1000), (2000, 50)
WHAT = ("ece", "classwise", "nll", "brier", "smooth", "standard")
PIXELS, SMOKE_PIXELS = (500, 5, 256, 256), (4, 5, 32, 32)
OF_PIXELS = ("ece", "ece:scheme=mass", "nll", "brier", "accuracy")
BINARY, SMOKE_BINARY = 20_000_000, 10_000
ROOT = Path(__file__).parents[1]
WORDS = (
    "Highest resident memory of a fresh process, less what it held after its imports; the input itself counts. "
    "`standard` is the standard set of 13 measures. Values alone, without intervals. Pixels are float32 logits and "
    "int64 labels, as images (N, C, H, W), whose pixels form a cluster, or as rows (n, C); an input is the logits. "
    "Binary rows are float64 scores and int64 labels, and an input is both. Measures of these have intervals."
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
    more, tables = _many_rows(SMOKE_PIXELS if smoke else PIXELS, SMOKE_BINARY if smoke else BINARY)
    return Section("Memory", WORDS, [*targets, *more], [table(head, rows), *tables])


def _many_rows(shape: tuple[int, ...], binary: int) -> tuple[list[Target], list[str]]:
    """Pixels by both entrances, and the standard set of binary rows, with their intervals."""
    size, name = 4 * int(np.prod(shape)), " x ".join(map(str, shape))
    lines, targets = [], []
    for what in OF_PIXELS:
        times = [_in_fresh_process(what, *shape, entrance=entrance) / size for entrance in ("rows", "images")]
        for entrance, result in zip(("rows", "images"), times, strict=True):
            title = f"peak memory of {what} of {name} float32 as {entrance}, in sizes of the input"
            targets.append(Target(title, result, "most", 4.0))
        lines.append([what, *(f"**{show(result)}**" for result in times)])
    result = _in_fresh_process("standard", binary, entrance="binary") / (16 * binary)
    title = f"peak memory of the standard measures of {binary:,} binary rows, in sizes of the input"
    targets.append(Target(title, result, "most", 4.0))
    lines.append([f"standard, {binary:,} binary rows", f"**{show(result)}**", ""])
    head = [f"measure of {name} pixels", "peak / input, as rows", "peak / input, as images"]
    return targets, [table(head, lines)]


def _in_fresh_process(what: str, *shape: int, entrance: str = "matrix") -> int:
    command = [sys.executable, "-m", "benchmarks.memory", entrance, what, *map(str, shape)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    return int(json.loads(done.stdout))


def _peak_of(what: str, n: int, k: int) -> int:
    """Runs in the fresh process."""
    from calibrant import Predictions, measure
    from calibrant.measuring.standard import STANDARD

    before = _forget_peak()
    data = overconfident(n, k)
    p = Predictions.from_logits(data.logits, data.labels)
    measure(p, STANDARD if what == "standard" else [what], resamples=0)
    return _status("VmHWM") - before


def _peak_of_many(entrance: str, what: str, shape: tuple[int, ...]) -> int:
    """Runs in the fresh process: pixels as images or as rows, or binary rows, with intervals."""
    from calibrant import Predictions, measure

    few = Predictions.binary([0.1, 0.6] * 50, [0, 1] * 50) if entrance == "binary" else None
    few = few or Predictions.from_logits([[0.0, 1.0], [0.5, 0.0]] * 50, [0, 1, 1, 0] * 25)
    measures = "standard" if what == "standard" else [what]
    measure(few, measures)  # imports everything
    rng, before = np.random.default_rng(0), _forget_peak()
    if entrance == "binary":
        scores = rng.random(*shape)
        labels = np.empty(len(scores), dtype=np.int64)
        for start in range(0, len(scores), 1 << 20):
            some = scores[start : start + (1 << 20)]
            labels[start : start + (1 << 20)] = rng.random(len(some)) < some**1.2
        p = Predictions.binary(scores, labels)
    else:
        logits, labels = np.empty(shape, dtype=np.float32), np.empty((shape[0], *shape[2:]), dtype=np.int64)
        for image, truth in zip(logits, labels, strict=True):
            image[:] = 2 * rng.standard_normal(image.shape, dtype=np.float32)
            truth[:] = np.where(rng.random(truth.shape) < 0.6, image.argmax(axis=0), rng.integers(shape[1], size=1))
        if entrance == "rows":
            logits, labels = logits.reshape(-1, shape[1]), labels.reshape(-1)  # other pixels, as many
        p = Predictions.from_logits(logits, labels, axis=1)
    measure(p, measures)
    return _status("VmHWM") - before


def _forget_peak() -> int:
    """Bytes held now. ru_maxrss will not do: a child inherits in it the peak of the process that started it."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(key: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    entrance, what, *sizes = sys.argv[1:]
    shape = tuple(map(int, sizes))
    print(_peak_of(what, *shape) if entrance == "matrix" else _peak_of_many(entrance, what, shape))
