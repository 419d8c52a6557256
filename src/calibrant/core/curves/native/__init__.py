"""The compiled passes over rows of logits (passes.c), where they were built; callers have a numpy twin for elsewhere.

The library is built with the package where a C compiler is found (hatch_build.py). The environment variable
CALIBRANT_NATIVE=0 switches it off.
"""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints

VARIABLE = "CALIBRANT_NATIVE"
VERSION = 1  # of the functions in passes.c
TYPES = {np.dtype(np.float64): 0, np.dtype(np.float32): 1, np.dtype(np.float16): 2}
NAMES = ("passes.so", "passes.dylib", "passes.dll")


def backend() -> str:
    """Which passes run: "native" or "numpy"."""
    return "native" if is_available() else "numpy"


def is_available() -> bool:
    return os.environ.get(VARIABLE) != "0" and _library() is not None


def softmax_rows(
    values: Floats,
    carried: Ints | None,
    confidence: Array,
    predicted: Ints,
    largest: Array,
    total: Array,
    probs: Array | None,
) -> int:
    """Fill the arrays of these rows; the first row with a number that is not finite, or -1.

    `carried` are classes whose probability is the confidence, where that is not the largest.
    """
    room = np.empty(values.shape[1])
    return int(
        _loaded().calibrant_softmax(
            *_matrix(values),
            _address(carried),
            *map(_address, (confidence, predicted, largest, total, probs, room)),
        )
    )


def probs_of(values: Floats, largest: Array, total: Array) -> Array:
    """Probabilities of some classes, by the largest logit and the sum of exp of their whole rows."""
    probs, room = np.empty(values.shape), np.empty(values.shape[1])
    _loaded().calibrant_probs(*_matrix(values), *map(_address, (largest, total, probs, room)))
    return probs


def temperature_sums(
    values: Floats, top: Array, label: Array, weights: Array | None, beta: float
) -> tuple[float, float]:
    """Sums over these rows of the first derivative of the NLL by ln(1 / T) and of the variance of the scaled logits."""
    sums, room = np.empty(2), np.empty(values.shape[1])
    _loaded().calibrant_temperature(
        *_matrix(values), *map(_address, (top, label, weights)), beta, *map(_address, (room, sums))
    )
    return float(sums[0]), float(sums[1])


def _matrix(values: Floats) -> tuple[int, int, int, int, int, int]:
    """Where a matrix lies: address, type, rows, columns and the bytes from one to the next of each."""
    return (values.ctypes.data, TYPES[values.dtype], *values.shape, *values.strides)


def _address(array: npt.NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data


def _loaded() -> Any:
    library = _library()
    assert library is not None
    return library


@cache
def _library() -> Any | None:
    folder = Path(__file__).parent
    for name in NAMES:
        if not (folder / name).exists():
            continue
        try:
            library = ctypes.CDLL(str(folder / name))
            if library.calibrant_version() != VERSION:
                return None  # built from another version of the source
        except (OSError, AttributeError):  # for another machine
            return None
        size, pointer = ctypes.c_ssize_t, ctypes.c_void_p
        matrix: list[Any] = [pointer, ctypes.c_int, size, size, size, size]
        library.calibrant_softmax.argtypes = [*matrix, *[pointer] * 7]
        library.calibrant_softmax.restype = size
        library.calibrant_probs.argtypes = [*matrix, *[pointer] * 4]
        library.calibrant_probs.restype = None
        library.calibrant_temperature.argtypes = [*matrix, *[pointer] * 3, ctypes.c_double, pointer, pointer]
        library.calibrant_temperature.restype = None
        return library
    return None
