"""The columns of the benchmark study for many networks: batteries a second on two cores."""

import multiprocessing
import os
from time import perf_counter, process_time

from benchmarks._data import overconfident
from benchmarks._page import Section, Target, show, table
from calibrant import Predictions
from calibrant.measuring.measure_sets import study_columns

SIZES = {"CIFAR-10": (10_000, 10), "CIFAR-100": (10_000, 100), "ImageNet16-120": (6000, 120)}
SMOKE_SIZES = dict.fromkeys(SIZES, (300, 10))
NETWORKS = 39_234  # different networks of both spaces, on each of the three data sets
WORDS = (
    "All 102 columns of a network but the two that need other images, from its logits, in two processes of one thread "
    "each. The time for all 117,702 pairs of the benchmark study is what the three rates foretell; making the logits "
    "is not in it. CPU time depends less on who else uses the machine."
)


def run(*, smoke: bool) -> Section:
    sizes, seconds = (SMOKE_SIZES, 0.0) if smoke else (SIZES, 10.0)
    rates = {name: _rate(n, k, seconds) for name, (n, k) in sizes.items()}
    minutes = sum(NETWORKS / rate for rate, _ in rates.values()) / 60
    targets = [Target("the columns of all 117,702 pairs on two cores", minutes, "most", 40.0, unit=" min")]
    rows = [
        [name, f"{sizes[name][0]:,} x {sizes[name][1]}", f"**{show(rate)}**", f"{1000 * cpu:.1f} ms"]
        for name, (rate, cpu) in rates.items()
    ]
    head = ["data set", "logits", "networks a second, two processes", "CPU time of one"]
    return Section("Batteries of many networks", WORDS, targets, [table(head, rows)])


def _rate(n: int, k: int, seconds: float) -> tuple[float, float]:
    """Batteries a second of two processes together, and the CPU time of one battery."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, _one_thread) as pool:
        pool.starmap(_work, [(n, k, 0.0)] * 2, chunksize=1)  # both have loaded everything
        done = pool.starmap(_work, [(n, k, seconds)] * 2, chunksize=1)
    return sum(count / wall for count, wall, _ in done), min(cpu / count for count, _, cpu in done)


def _one_thread() -> None:
    os.environ["CALIBRANT_THREADS"] = "1"


def _work(n: int, k: int, seconds: float) -> tuple[int, float, float]:
    data, count = overconfident(n, k), 0
    start, cpu = perf_counter(), process_time()
    while count == 0 or perf_counter() - start < seconds:
        study_columns(Predictions.from_logits(data.logits, data.labels))
        count += 1
    return count, perf_counter() - start, process_time() - cpu
