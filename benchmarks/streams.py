"""Streams: ten million confidences, pixels through an accumulator, a watch, beside the peers."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time

import numpy as np
import torch
from netcal.metrics import ECE
from sklearn.calibration import calibration_curve
from sklearn.metrics import roc_auc_score
from torchmetrics.classification import MulticlassCalibrationError
from torchmetrics.functional.classification import binary_calibration_error

import calibrant as cal
from benchmarks._clock import OURS, Effort, race
from benchmarks._data import overconfident
from benchmarks._page import Section, Target, show, small_print, table
from benchmarks.memory import _forget_peak, _status

ROWS, SMOKE_ROWS = 10_000_000, 20_000
PIXELS, SMOKE_PIXELS, CLASSES = 500_000, 5000, 19
BLOCKS = 4  # the same pixels again and again: an accumulator's state does not grow, so 10^8 take as long a pixel
BINS = 15
ROOT = Path(__file__).parents[1]
WORDS = (
    "Confidences from Beta(5, 1.5) with right or wrong. *Rows a second a core* are by the processor's time, with one "
    "thread. Pixels go through an accumulator with all its usual measures (ECE, class-wise, NLL, Brier, AUROC, ...) in "
    f"blocks of {PIXELS:,}; torchmetrics computes the ECE alone."
)


def run(*, smoke: bool) -> Section:
    rows, pixels = (SMOKE_ROWS, SMOKE_PIXELS) if smoke else (ROWS, PIXELS)
    document = json.loads(_in_fresh_process(rows))
    speeds = {"accumulator, pixels": _pixels(pixels), "watch, rows": _watched(rows // 10)}
    targets = [
        Target(f"ECE, AUROC and a temperature of {rows:,} confidences", document["seconds"], "most", 3.0, " s"),
        Target("the same, peak memory in sizes of the input", document["peak"] / document["input"], "most", 4.0),
        Target(
            f"{CLASSES}-class pixels a second a core", speeds["accumulator, pixels"] / 1e6, "least", 2.0, " million"
        ),
        Target("rows watched a second a core", speeds["watch, rows"] / 1e6, "least", 1.0, " million"),
    ]
    lines = [[name, f"**{show(speed / 1e6)} million**"] for name, speed in speeds.items()]
    lines.append(["torchmetrics MulticlassCalibrationError, pixels", f"{show(_peer_pixels(pixels) / 1e6)} million"])
    parts = ", ".join(f"{name} {show(seconds)} s" for name, seconds in document["parts"].items())
    tables = [table(["what", "a second a core"], lines), f"{rows:,} confidences: {parts}.", _peers(rows // 10, smoke)]
    return Section(f"Streams: {rows:,} rows", WORDS, targets, tables)


def _scores(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    s = rng.beta(5, 1.5, n)
    return s, rng.random(n) < s


def _of_cpu(work: Callable[[], None], count: int) -> float:
    """How many a second of the processor's time."""
    start = process_time()
    work()
    return count / (process_time() - start)


def _pixels(n: int) -> float:
    data, sums = overconfident(n, CLASSES), cal.Accumulator()
    sums.update(cal.Predictions.from_logits(data.logits[:1000], data.labels[:1000]))  # what is loaded once

    def work() -> None:
        for _ in range(BLOCKS):
            sums.update(cal.Predictions.from_logits(data.logits, data.labels))

    with _one_thread():
        return _of_cpu(work, BLOCKS * n)


def _peer_pixels(n: int) -> float:
    data = overconfident(n, CLASSES)
    logits, labels = torch.from_numpy(data.logits), torch.from_numpy(data.labels)
    metric = MulticlassCalibrationError(CLASSES, n_bins=BINS, validate_args=False)

    def work() -> None:
        for _ in range(BLOCKS):
            metric.update(logits.softmax(dim=1), labels)
        metric.compute()

    with _one_thread():
        return _of_cpu(work, BLOCKS * n)


def _watched(n: int) -> float:
    p, watch = cal.Predictions.from_confidence(*_scores(n)), cal.Watch()
    with _one_thread():
        return _of_cpu(lambda: watch.update(p), n)


def _peers(n: int, smoke: bool) -> str:
    s, hit = _scores(n)
    tensors = torch.from_numpy(s), torch.from_numpy(hit.astype(np.int64))

    def sklearn_ece() -> float:
        right, said = calibration_curve(hit, s, n_bins=BINS)
        count = np.histogram(s, np.linspace(0, 1, BINS + 1))[0]
        return float(np.abs(right - said) @ count[count > 0] / n)

    ece = {
        OURS: lambda: cal.measure(cal.Predictions.from_confidence(s, hit), "ece", resamples=0).value,
        "calibrant, accumulator": lambda: _accumulated(s, hit, "ece"),
        "torchmetrics": lambda: float(binary_calibration_error(*tensors, n_bins=BINS)),
        "netcal": lambda: float(ECE(BINS).measure(s, hit.astype(np.int64))),
        "scikit-learn": sklearn_ece,
    }
    auroc = {
        OURS: lambda: cal.measure(cal.Predictions.from_confidence(s, hit), "auroc_correct", resamples=0).value,
        "calibrant, accumulator": lambda: _accumulated(s, hit, "auroc_correct"),
        "scikit-learn": lambda: float(roc_auc_score(hit, s)),
    }
    effort = Effort(1 if smoke else 3, 10)
    lines = [[what, small_print(race(entries, effort))] for what, entries in (("ECE", ece), ("AUROC", auroc))]
    return table([f"{n:,} confidences", "milliseconds, and the number"], lines)


def _accumulated(s: np.ndarray, hit: np.ndarray, what: str) -> float:
    sums = cal.Accumulator([what])
    sums.update(cal.Predictions.from_confidence(s, hit))
    return sums.measure(what).value


@contextmanager
def _one_thread() -> Iterator[None]:
    """Everything on one core."""
    before = torch.get_num_threads(), cal.threads()
    torch.set_num_threads(1)
    cal.threads(1)
    yield
    torch.set_num_threads(before[0])
    cal.threads(before[1])


def _in_fresh_process(rows: int) -> str:
    command = [sys.executable, "-m", "benchmarks.streams", str(rows)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=900).stdout


def _large(n: int) -> dict[str, object]:
    """Runs in the fresh process: seconds of each step, and the peak of memory with the input."""
    from time import perf_counter

    small = cal.Predictions.from_confidence(*_scores(1000))
    steps = {
        "ECE": lambda p: cal.measure(p, "ece", resamples=0),
        "AUROC": lambda p: cal.measure(p, "auroc_correct", resamples=0),
        "temperature": lambda p: cal.fit(p, "temperature"),
    }
    for step in steps.values():
        step(small)  # imports
    before = _forget_peak()
    s, hit = _scores(n)
    parts, start = {}, perf_counter()
    p = cal.Predictions.from_confidence(s, hit)
    parts["reading"] = perf_counter() - start
    for name, step in steps.items():
        begin = perf_counter()
        step(p)
        parts[name] = perf_counter() - begin
    seconds = perf_counter() - start
    return {"seconds": seconds, "parts": parts, "peak": _status("VmHWM") - before, "input": s.nbytes + hit.nbytes}


if __name__ == "__main__":
    print(json.dumps(_large(int(sys.argv[1]))))
