"""Threads: how many, and work spread over them where numpy releases the lock."""

import math
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

VARIABLE = "CALIBRANT_THREADS"
WORTH_A_THREAD = 200_000  # elements; below this, starting a thread costs more than it saves
CONTROL_GROUPS = Path("/sys/fs/cgroup")  # where Linux tells a container how much of the processors it may use

_asked: int | None = None  # by `threads(n)`
_busy = threading.local()  # set in threads that already are part of spread work


def threads(n: int | None = None) -> int:
    """The number of threads calibrant uses; with a number, use so many from now on.

    By default as many as the process may use cores: affinity and container limits count, and the environment variable
    CALIBRANT_THREADS sets it. Worker processes use one, unless told otherwise; work that is spread already uses one.

    >>> before = threads()
    >>> threads(1), threads(), threads(before) == before
    (1, 1, True)
    """
    global _asked
    if n is not None:
        _asked = _check_count("threads", n)
    elif _spread():
        return 1
    if _asked is not None:
        return _asked
    if os.environ.get(VARIABLE):
        return _check_count(VARIABLE, os.environ[VARIABLE])
    return 1 if multiprocessing.parent_process() is not None else cores()


@cache
def cores() -> int:
    """Cores that this process may use, by its affinity and by the limit of its container."""
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return free if quota is None else max(1, min(free, math.ceil(quota)))


def pieces(n: int, size: int) -> list[slice]:
    """Slices of at most `size` that cover 0..n.

    >>> pieces(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def threads_worth(elements: int) -> int:
    """The number of threads that an amount of work is worth."""
    return min(threads(), elements // WORTH_A_THREAD + 1) if elements >= WORTH_A_THREAD else 1


def run_pieces(work: Callable[[slice], None], parts: list[slice], elements: int) -> None:
    """Call `work` for every part; with many elements in several threads, each of which takes the next part.

    A call inside a call runs where it is. `work` must write to places of its own part, so the number of threads never
    changes a result.
    """
    count = min(threads_worth(elements), len(parts))
    if count <= 1:
        for part in parts:
            work(part)
        return
    queue = iter(parts)
    others = [_pool(count - 1).submit(_run, work, queue) for _ in range(count - 1)]
    try:
        _run(work, queue)
    finally:
        for other in others:
            other.result()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep matrix products inside this block to one thread: our own threads are enough."""
    limited: AbstractContextManager[Any] = _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")
    return limited


def _spread() -> bool:
    """Whether this thread is part of spread work, so that the other threads are taken."""
    return bool(getattr(_busy, "now", False))


def _check_count(what: str, value: object) -> int:
    try:
        n = int(str(value))
    except ValueError:
        n = 0
    if n < 1:
        raise InputError(what, expected="a whole number, 1 or more", got=f"'{value}'", fix=f"use {cores()}")
    return n


def _quota() -> float | None:
    """Processors that a container may keep busy, if it has a limit: control groups of version 2, then 1."""
    try:
        most, period = (CONTROL_GROUPS / "cpu.max").read_text().split()
        return None if most == "max" else int(most) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass
    try:
        old = CONTROL_GROUPS / "cpu"
        most, period = ((old / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(most) / int(period) if int(most) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _run(work: Callable[[slice], None], parts: Iterator[slice]) -> None:
    _busy.now = True
    try:
        for part in parts:
            work(part)
    finally:
        _busy.now = False


@cache
def _libraries(with_scipy: bool) -> Any:
    """The libraries that are loaded; scipy brings one of its own, perhaps later."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _pool(size: int) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(size, thread_name_prefix="calibrant")


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has no threads of ours
