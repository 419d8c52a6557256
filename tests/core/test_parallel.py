"""Threads: how many there are, who may use them, and that their number never changes a result."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import calibrant as cal
from calibrant.core import parallel
from calibrant.core.errors import InputError
from calibrant.core.parallel import pieces, run_pieces, threads
from calibrant.core.predictions import Predictions
from calibrant.measures import make


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch, tmp_path):
    """As in a process that has just started, outside any container."""
    monkeypatch.setattr(parallel, "_asked", None)
    monkeypatch.delenv(parallel.VARIABLE, raising=False)
    monkeypatch.setattr(parallel, "CONTROL_GROUPS", tmp_path / "no container")
    parallel.cores.cache_clear()
    yield
    parallel.cores.cache_clear()


@pytest.fixture
def every_piece_is_worth_it(monkeypatch):
    """Spread even the smallest work."""
    monkeypatch.setattr(parallel, "WORTH_A_THREAD", 1)


def within(seconds, work):
    """The result of work in a thread of its own; a deadlock fails instead of hanging."""
    outputs = []
    thread = threading.Thread(target=lambda: outputs.append(work()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "deadlock"
    return outputs[0]


# -- how many -------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_a_process_bound_to_one_core_uses_one_thread():
    bind = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    code = f"{bind}; import calibrant; print(calibrant.threads())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
@pytest.mark.parametrize("bound", [1, 3, 64])
def test_as_many_threads_as_cores_that_may_be_used(monkeypatch, bound):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(bound)))
    assert cal.threads() == bound


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "200000 100000"}, 2),
        ({"cpu.max": "150000 100000"}, 2),  # one and a half: the second is used half the time
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "1600000 100000"}, 8),  # never more than there are
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu.max": "100000 0"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),  # version 1
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ({}, 8),
    ],
    ids=str,
)
def test_the_limit_of_a_container_counts(monkeypatch, tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(parallel, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert threads() == expected


def test_the_environment_and_python_set_it(monkeypatch):
    monkeypatch.setenv("CALIBRANT_THREADS", "5")
    assert threads() == 5
    assert cal.threads(3) == 3
    assert threads() == 3  # what Python asks for wins
    monkeypatch.setenv("CALIBRANT_THREADS", "")
    monkeypatch.setattr(parallel, "_asked", None)
    assert threads() == parallel.cores()


@pytest.mark.parametrize("wrong", ["0", "-2", "many", "1.5"])
def test_other_numbers_are_refused(monkeypatch, wrong):
    with pytest.raises(InputError, match=r"threads: expected a whole number, 1 or more"):
        threads(wrong)
    monkeypatch.setenv("CALIBRANT_THREADS", wrong)
    with pytest.raises(InputError, match=r"CALIBRANT_THREADS: expected a whole number, 1 or more"):
        threads()


def threads_of_a_child(_):
    return threads(), os.environ.get(parallel.VARIABLE)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize(("setting", "expected"), [(None, 1), ("4", 4)])
def test_worker_processes_use_one_unless_told(monkeypatch, setting, expected):
    if setting:
        monkeypatch.setenv("CALIBRANT_THREADS", setting)
    with multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn").Pool(1) as pool:
        assert pool.map(threads_of_a_child, [0]) == [(expected, setting)]


# -- work spread over them ------------------------------------------------------------------------


def test_pieces_cover_everything_once():
    for n, size in ((10, 3), (9, 3), (1, 5), (0, 4)):
        assert [i for part in pieces(n, size) for i in range(part.start, part.stop)] == list(range(n))


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_piece_is_done_once_in_so_many_threads(every_piece_is_worth_it, count):
    threads(count)
    together, done = threading.Barrier(count), []

    def work(part):
        together.wait(timeout=20)  # only if `count` threads are here at once does anyone go on
        done.append(part.start)

    run_pieces(work, pieces(count, 1), 100)
    assert sorted(done) == list(range(count))


def test_small_work_stays_where_it_is():
    threads(4)
    seen = set()
    run_pieces(lambda _: seen.add(threading.get_ident()), pieces(8, 1), parallel.WORTH_A_THREAD - 1)
    assert seen == {threading.get_ident()}


def test_work_inside_work_runs_in_place(every_piece_is_worth_it):
    threads(3)
    done = []

    def outer(part):
        here = threading.get_ident()
        run_pieces(lambda inner: done.append((part.start, inner.start, threading.get_ident() == here)), pieces(4, 1), 9)

    within(20, lambda: run_pieces(outer, pieces(4, 1), 100))
    assert sorted(done) == [(i, j, True) for i in range(4) for j in range(4)]


def test_inside_spread_work_there_is_one_thread(every_piece_is_worth_it):
    """Whoever asks: a search tree or a pool that somebody starts there must not start more."""
    threads(3)
    seen = []
    run_pieces(lambda _: seen.append(threads()), pieces(4, 1), 100)
    assert seen == [1, 1, 1, 1]
    assert threads() == 3


def everything(logits, labels):
    """Numbers and arrays from every part that spreads work."""
    p = Predictions.from_logits(logits, labels)
    specs = ("ece", "classwise", "brier", "nll", "ks", "sece", "kde")
    maps = [cal.fit(p, spec).to_json() for spec in ("temperature", "vector", "matrix")]
    return [make(spec)(p) for spec in specs], p.probs.tobytes(), p.confidence.tobytes(), maps


def test_results_are_the_same_bytes_for_any_number_of_threads(every_piece_is_worth_it, monkeypatch):
    for room in (
        "core.predictions.constants",
        "core.statistics.temperature",
        "calibrators._linear",
        "calibrators._structured",
    ):
        monkeypatch.setattr(f"calibrant.{room}.CHUNK_ELEMENTS", 80)
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(100, 5)), rng.integers(0, 5, size=100)
    results = []
    for count in (1, 2, 3, 7):
        threads(count)
        results.append(everything(logits, labels))
    assert all(one == results[0] for one in results[1:])


def test_many_threads_of_the_caller_get_the_same_too(every_piece_is_worth_it, monkeypatch):
    monkeypatch.setattr("calibrant.core.predictions.constants.CHUNK_ELEMENTS", 64)
    threads(2)
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(200, 12)), rng.integers(0, 12, size=200)
    specs = ["ece", "classwise", "brier", "nll", "ks"] * 4
    alone = [make(spec)(Predictions.from_logits(logits, labels)) for spec in specs]
    shared = Predictions.from_logits(logits, labels)

    def work():
        with ThreadPoolExecutor(6) as pool:
            own = list(pool.map(lambda spec: make(spec)(Predictions.from_logits(logits, labels)), specs))
            return own, list(pool.map(lambda spec: make(spec)(shared), specs))

    assert within(60, work) == (alone, alone)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_an_error_in_a_thread_is_not_lost(every_piece_is_worth_it, count, start):
    threads(count)

    def work(part):
        if part.start == start:
            raise RuntimeError("broken piece")

    with pytest.raises(RuntimeError, match="broken piece"):
        run_pieces(work, pieces(4, 1), 100)
    done = []
    run_pieces(lambda part: done.append(part.start), pieces(4, 1), 100)
    assert sorted(done) == [0, 1, 2, 3]


def measure_in_child(values):
    threads(2)
    return make("classwise")(Predictions.from_logits(*values))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_it_has_not():
    """The second thread was used before the fork: the child has none of it."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(30_000, 8)), rng.integers(0, 8, size=30_000)  # above WORTH_A_THREAD
    here = measure_in_child(values)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(measure_in_child, (values,)).get(timeout=60) == here


def test_matrix_products_start_no_threads_inside():
    code = """
import json, numpy, threadpoolctl
from calibrant.core.parallel import one_blas_thread
def blas():
    return sorted({pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"})
before = blas()
with one_blas_thread():
    inside = blas()
print(json.dumps([before, inside, blas()]))
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    before, inside, after = json.loads(done.stdout)
    assert set(inside) <= {1}
    assert after == before
