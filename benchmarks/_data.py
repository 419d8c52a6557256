"""Seeded logits of an overconfident network that is right three times in four."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

ACCURACY = 0.75
SHARPNESS = 5.0  # mean confidence 0.85 to 0.9 for 10 to 1000 classes


@dataclass(frozen=True)
class Data:
    logits: npt.NDArray[np.floating[Any]]  # (n, k)
    labels: npt.NDArray[np.int64]  # (n,)

    @property
    def size(self) -> str:
        n, k = self.logits.shape
        return f"{n:,} x {k}"


def overconfident(n: int, k: int, *, dtype: str = "float32", seed: int = 0) -> Data:
    """Noise, with the true class lifted as far as the accuracy asks. Works in place: no second array of (n, k)."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((n, k), dtype=np.float32)
    labels = rng.integers(0, k, size=n)
    rows = np.arange(n)
    true = logits[rows, labels]
    logits[rows, labels] = -np.inf
    missing = logits.max(axis=1) - true  # what each true class lacks to win
    logits[rows, labels] = true + np.quantile(missing, ACCURACY).astype(np.float32)
    logits *= np.float32(SHARPNESS)
    return Data(logits.astype(dtype, copy=False), labels)


def plain_softmax(logits: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """The yardstick: one softmax as anyone would write it."""
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))
