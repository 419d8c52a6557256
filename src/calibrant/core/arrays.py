"""Array types, and work spread over two threads where numpy releases the lock."""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]  # float32 or float64, as the user gave it
Ints = npt.NDArray[np.int64]

WORKERS = min(2, os.cpu_count() or 1)
WORTH_A_THREAD = 200_000  # elements; below this, starting a thread costs more than it saves


def pieces(n: int, size: int) -> list[slice]:
    """Slices of at most `size` that cover 0..n.

    >>> pieces(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def run_pieces(work: Callable[[slice], None], parts: list[slice], elements: int) -> None:
    """Call `work` for every part; with many elements, half of the parts go to a second thread.

    When that thread is busy (a call inside a call, or a user's own threads) everything runs here.
    """
    if elements < WORTH_A_THREAD or WORKERS == 1 or not _second_thread.acquire(blocking=False):
        _run(work, parts)
        return
    try:
        half = len(parts) // 2
        other = _pool().submit(_run, work, parts[half:])
        _run(work, parts[:half])
        other.result()
    finally:
        _second_thread.release()


def _run(work: Callable[[slice], None], parts: list[slice]) -> None:
    for part in parts:
        work(part)


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Inside, matrix products start no threads of their own: ours are enough, and theirs wait for each other."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _pool() -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1)


def _forget_threads() -> None:
    """A forked process has no threads of ours."""
    global _second_thread
    _second_thread = threading.Lock()
    _pool.cache_clear()


_second_thread = threading.Lock()
if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forget_threads)
