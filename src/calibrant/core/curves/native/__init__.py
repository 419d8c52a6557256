"""The compiled passes over rows of logits (passes.c), where they were built; callers have a numpy twin for elsewhere.

The library is built with the package where a C compiler is found (hatch_build.py). The environment variable
CALIBRANT_NATIVE=0 switches it off.
"""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.parallel import pieces, run_pieces, threads_worth

VARIABLE = "CALIBRANT_NATIVE"
VERSION = 8  # of the functions in passes.c
TYPES = {np.dtype(np.float64): 0, np.dtype(np.float32): 1, np.dtype(np.float16): 2, np.dtype(np.uint16): 3}
NAMES = ("passes.so", "passes.dylib", "passes.dll")
WIDTH, ROWS_OF_ROOM, CACHE, IN_TURN, FEW = 16, 26, 1024, 4, 1 << 15  # as in passes.c
SHARES = 8  # most parts of the rows, each one call: few enough, and the same for every number of threads
SHARE = 250_000  # elements that are worth a call of their own


class SoftmaxStats(NamedTuple):
    """Results of one pass over the scores for every row, (n,)."""

    confidence: Array
    predicted: Ints
    largest: Array  # score
    total: Array  # sum of exp(logit - largest); one for probabilities
    square: Array | None = None  # sum of squared probabilities, which only the compiled pass finds
    true_log_prob: Array | None = None  # log-probability of the label, likewise
    true_prob: Array | None = None


def backend() -> str:
    """The name of the passes in use: "native" or "numpy"."""
    return "native" if is_available() else "numpy"


def is_available() -> bool:
    return os.environ.get(VARIABLE) != "0" and _library() is not None


def shares(values: Floats) -> list[slice]:
    """Split the rows into parts, one for each call of a pass."""
    n = len(values)
    return pieces(n, max(1, -(-n // max(1, min(SHARES, values.size // SHARE)))))


def softmax_rows(
    values: Floats, labels: Ints | None, carried: Ints | None, columns: Array, taken: Ints
) -> tuple[bool, bool, float, float]:
    """Fill the columns of rows that no other call takes: those of SoftmaxStats, (7, n), or (5, n) without labels.

    Returns whether all their numbers are finite and all labels are classes, and the range of the numbers, which says
    nothing where one is NaN. `taken`, [0] at first, counts the rows that calls in several threads have taken.
    `carried` are classes whose probability is the confidence, where that is not the largest.
    """
    limits = np.empty(2)
    valid = _call("softmax", *_matrix(values), labels, carried, columns, limits, _room(values), taken)
    return bool(valid & 1), bool(valid & 2), float(limits[0]), float(limits[1])


def probs_of(values: Floats, largest: Array, total: Array) -> Array:
    """Probabilities of some classes, by the largest logit and the sum of exp of their whole rows."""
    probs = np.empty(values.shape)
    _call("probs", *_matrix(values), largest, total, probs, 0, _room(values))
    return probs


def prob_columns(values: Floats, largest: Array, total: Array, columns: Array) -> None:
    """Fill columns (k, n) with the probabilities of some classes: every class lies in one piece."""
    _call("probs", *_matrix(values), largest, total, columns, columns.shape[1], _room(values))


def temperature_sums(values: Floats, top: Array, label: Array, weights: Array | None, beta: float) -> Array:
    """Sums over the rows, and the widest range of a row of scaled logits, in several threads.

    Of the first derivative of the NLL by ln(1 / T), and of the second and third cumulants of the scaled logits.
    """
    n, k = values.shape
    sums, taken = np.empty((-(-n // (1 + FEW // k)), 4)), np.zeros(1, dtype=np.int64)

    def work(_: slice) -> None:
        _call("temperature", *_matrix(values), top, label, weights, beta, sums, _room(values), taken)

    run_pieces(work, [slice(0, n)] * threads_worth(values.size), values.size)
    return np.append(sums[:, :3].sum(axis=0), sums[:, 3].max())


def vector_sums(
    values: Floats, labels: Ints, rows_weigh: Array | None, weight: Array, bias: Array
) -> tuple[float, Array, Array]:
    """The NLL of softmax(weight z + bias), summed over these rows, and its gradients by weight and bias."""
    k = values.shape[1]
    wide = np.zeros((4, _whole_vectors(k)))
    wide[0, :k], wide[1, :k] = weight, bias
    value = _call("vector_fit", *_matrix(values), labels, rows_weigh, *wide, _room(values))
    return float(value), wide[2, :k], wide[3, :k]


def residuals(scores: Floats, labels: Ints, rows_weigh: Array | None) -> float:
    """Turn scores (n, k), in one piece, into probabilities minus labels, weighed; the sum of the NLL."""
    if not scores.flags.c_contiguous:
        raise ValueError("these scores do not lie in one piece")
    where, type_, n, k, _, _ = _matrix(scores)
    return float(_call("residuals", where, type_, n, k, labels, rows_weigh, _room(scores)))


def class_bins(
    values: Floats, softmax: tuple[Array, Array] | None, labels: Ints, edges: Array, right: bool
) -> tuple[Array, Array, Array]:
    """Rows, sum of scores and positives in the bins of every class, each (k, bins).

    `softmax` holds the largest logit and the sum of exp of every row; values are probabilities without it.
    """
    (n, k), bins = values.shape, len(edges) - 1
    sums = np.zeros((3, k, bins))
    low = np.zeros(_whole_vectors(k))
    about = *(softmax or (None, None)), labels, edges, bins, int(right)
    _call("class_bins", *_matrix(values), *about, *sums, low, _room(values))
    sums[0, :, 0], sums[1, :, 0] = n - sums[0, :, 1:].sum(axis=1), low[:k]
    return sums[0], sums[1], sums[2]


def score_bins(
    scores: Array, outcomes: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]", edges: Array, right: bool
) -> Array:
    """Rows, sum of scores and positives in equal-width bins of one score a row, (3, bins)."""
    bins = len(edges) - 1
    tables = np.zeros((IN_TURN, bins, 4))
    _call("score_bins", scores, outcomes, len(scores), edges, bins, int(right), tables)
    return np.asarray(tables.sum(axis=0).T[:3])


def hash_rows(values: Floats, labels: Ints, classes: Ints) -> Ints:
    """One 64-bit number per row, from its label and differences of its logits of these classes and of the label."""
    hashes = np.empty(len(values), dtype=np.int64)
    _call("hash", *_matrix(values), labels, classes, len(classes), hashes)
    return hashes


def prefix_sums(values: Array) -> Array:
    """Running sums of every row (b, n), from 0, (b, n + 1)."""
    b, n = values.shape
    sums = np.empty((b, n + 1))
    _call("prefix", values, b, n, sums)
    return sums


def _matrix(values: Floats) -> tuple[int, int, int, int, int, int]:
    """The memory layout of a matrix: address, type, rows, columns and the strides of each."""
    return (values.ctypes.data, TYPES[values.dtype], *values.shape, *values.strides)


def _room(values: Floats) -> Array:
    return np.empty(ROWS_OF_ROOM * _whole_vectors(values.shape[1]) + 2 * CACHE)


def _whole_vectors(k: int) -> int:
    return -(-k // WIDTH) * WIDTH


def _call(name: str, *arguments: npt.NDArray[Any] | float | None) -> Any:
    """Call a pass with the addresses of arrays, which live until it ends because `arguments` holds them."""
    run = getattr(_library(), f"calibrant_{name}")
    return run(*[_address(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments])


def _address(array: npt.NDArray[Any]) -> int:
    if not array.flags.c_contiguous or array.dtype not in (np.float64, np.int64, np.bool_):
        raise ValueError(f"an array of {array.dtype}, in one piece or not, is not what the compiled passes read")
    return array.ctypes.data


@cache
def _library() -> Any | None:
    files = [file for name in NAMES if (file := Path(__file__).parent / name).exists()]
    return load_library(files[0]) if files else None


def load_library(file: Path) -> Any | None:
    """The functions in a compiled passes.c; None where it is of another version or for another machine."""
    try:
        library = ctypes.CDLL(str(file))
        if library.calibrant_version() != VERSION:
            return None
    except (OSError, AttributeError):
        return None
    size, pointer, number = ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_double
    matrix: list[Any] = [pointer, ctypes.c_int, size, size, size, size]
    library.calibrant_softmax.argtypes = [*matrix, *[pointer] * 6]
    library.calibrant_probs.argtypes = [*matrix, *[pointer] * 3, size, pointer]
    library.calibrant_temperature.argtypes = [*matrix, *[pointer] * 3, number, *[pointer] * 3]
    library.calibrant_vector_fit.argtypes = [*matrix, *[pointer] * 7]
    library.calibrant_residuals.argtypes = [pointer, ctypes.c_int, size, size, *[pointer] * 3]
    library.calibrant_class_bins.argtypes = [*matrix, *[pointer] * 4, size, ctypes.c_int, *[pointer] * 5]
    library.calibrant_score_bins.argtypes = [pointer, pointer, size, pointer, size, ctypes.c_int, pointer]
    library.calibrant_hash.argtypes = [*matrix, pointer, pointer, size, pointer]
    library.calibrant_prefix.argtypes = [pointer, size, size, pointer]
    for sums in (library.calibrant_vector_fit, library.calibrant_residuals):
        sums.restype = number
    for nothing in ("probs", "temperature", "class_bins", "score_bins", "hash", "prefix"):
        getattr(library, f"calibrant_{nothing}").restype = None
    return library
