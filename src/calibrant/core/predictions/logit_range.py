"""Keep logits in a range in which their sums and squares are finite."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats

F = TypeVar("F", bound=np.floating[Any])

MAX_ABS_LOGIT = 1e30  # logits this far below the largest are as unlikely as any that are farther
MASK_OFFSET = 1e6  # so far below the largest logit of its row stands an option that the row does not have


def clip_logits(logits: npt.NDArray[F]) -> npt.NDArray[F]:
    """Logits within 1e30: rows beyond are shifted so that the largest is 0, and cut off at -1e30.

    Sums and squares of logits stay finite, and no probability changes.

    >>> clip_logits(np.array([[1e308, -1e308], [3.0, 1.0]])).tolist()
    [[0.0, -1e+30], [3.0, 1.0]]
    """
    if logits.size == 0 or (logits.min() >= -MAX_ABS_LOGIT and logits.max() <= MAX_ABS_LOGIT):
        return logits
    far = np.flatnonzero(np.abs(logits).max(axis=1) > MAX_ABS_LOGIT)
    with np.errstate(over="ignore"):
        below = logits[far] - logits[far].max(axis=1, keepdims=True)
    limited = logits.copy()
    limited[far] = np.maximum(below, -MAX_ABS_LOGIT)
    return limited


def mask_options(logits: npt.NDArray[F], exists: npt.NDArray[np.bool_]) -> npt.NDArray[F]:
    """Logits in which options that a row does not have are so far below the others that their probability is 0."""
    largest = np.where(exists, logits, -np.inf).max(axis=1, keepdims=True)
    return np.asarray(np.where(exists, logits, largest - MASK_OFFSET), dtype=logits.dtype)


def scale(z: Floats, weight: Array, bias: Array) -> Array:
    """weight z + bias in float64, within range; weight is a number, one per class (k,), or a matrix (k, k)."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.asarray((z @ weight.T if weight.ndim == 2 else z * weight) + bias, dtype=np.float64)
        wide = ~np.isfinite(scaled).all(axis=1) if not np.isfinite(scaled.sum()) else np.zeros(0, dtype=bool)
        if wide.any():
            scaled[wide] = _scale_overflowing(z[wide].astype(np.float64), weight, bias)
    return clip_logits(scaled)


def _scale_overflowing(z: Array, weight: Array, bias: Array) -> Array:
    """weight z + bias for rows that overflow, in smaller units; only differences inside a row are kept."""
    rows = np.maximum(np.abs(z).max(axis=1, keepdims=True), 1.0)
    all_rows = max(float(np.abs(weight).max()), float(np.abs(bias).max()), 1.0)
    x, w = z / rows, weight / all_rows
    scaled = (x @ w.T if w.ndim == 2 else x * w) + bias / all_rows / rows
    return np.asarray(np.maximum((scaled - scaled.max(axis=1, keepdims=True)) * rows * all_rows, -MAX_ABS_LOGIT))
