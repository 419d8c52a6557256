"""The columns of the benchmark study for many networks: batteries a second on two cores, and a query on all of them."""

import multiprocessing
import os
from time import perf_counter, process_time

import numpy as np
import polars as pl

from benchmarks._data import overconfident
from benchmarks._page import Section, Target, show, table
from calibrant import Predictions, battery
from calibrant.core.query import query

SIZES = {"CIFAR-10": (10_000, 10), "CIFAR-100": (10_000, 100), "ImageNet16-120": (6000, 120)}
SMOKE_SIZES = dict.fromkeys(SIZES, (300, 10))
NETWORKS = 39_234  # different networks of both spaces, on each of the three data sets
COLUMNS = 150
WORDS = (
    "All 102 columns of a network but the two that need other images, from its logits, in two processes of one thread "
    "each. The time for all 117,702 pairs of the benchmark study is what the three rates foretell; making the logits "
    "is not in it. CPU time depends less on who else uses the machine. The query is a filter and a sort on a table of "
    "as many rows and 150 columns."
)
SQL = "select arch, accuracy, pre_0 from nas where accuracy > 0.8 order by pre_0 limit 10"


def run(*, smoke: bool) -> Section:
    sizes, seconds = (SMOKE_SIZES, 0.0) if smoke else (SIZES, 10.0)
    rates = {name: _rate(n, k, seconds) for name, (n, k) in sizes.items()}
    minutes = sum(NETWORKS / rate for rate, _ in rates.values()) / 60
    asked = _query(1000 if smoke else 3 * NETWORKS)
    targets = [
        Target("the columns of all 117,702 pairs on two cores", minutes, "most", 90.0, unit=" min"),
        Target("a query on 117,702 rows of 150 columns", asked, "most", 1.0, unit=" s"),
    ]
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
        battery(Predictions.from_logits(data.logits, data.labels))
        count += 1
    return count, perf_counter() - start, process_time() - cpu


def _query(rows: int) -> float:
    rng = np.random.default_rng(0)
    names = ["accuracy", *(f"pre_{i}" for i in range(COLUMNS - 2))]
    made = pl.DataFrame({"arch": [f"network {i}" for i in range(rows)]} | {name: rng.random(rows) for name in names})
    start = perf_counter()
    query(made, SQL)
    return perf_counter() - start
