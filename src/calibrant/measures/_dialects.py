"""How peers compute their ECE and smooth ECE, and what differs from ours, in words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curve import Curve

Dialect = Literal["torchmetrics", "focal_calibration"]


@dataclass(frozen=True)
class Rule:
    words: str
    ece: Callable[[Curve, int], float]


def _torchmetrics(curve: Curve, bins: int) -> float:
    scores, edges = curve.scores.astype(np.float32), np.linspace(0, 1, bins + 1, dtype=np.float32)
    return _from_index(scores, curve.hits, edges.searchsorted(scores, side="right") - 1)


def _focal_calibration(curve: Curve, bins: int) -> float:
    scores, edges = curve.scores.astype(np.float32), np.linspace(0, 1, bins + 1, dtype=np.float32)
    return _from_index(scores, curve.hits, edges.searchsorted(scores, side="left") - 1)


def _from_index(scores: "np.ndarray[tuple[int], np.dtype[np.float32]]", hits: Array, index: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> float:
    keep = index >= 0
    sums = np.bincount(index[keep], (scores - hits)[keep])
    return float(np.abs(sums).sum() / len(scores))


DIALECTS: dict[str, Rule] = {
    "torchmetrics": Rule("float32 confidences; left-closed bins; a confidence of exactly 1 has a bin of its own", _torchmetrics),
    "focal_calibration": Rule("float32 confidences and edges; right-closed bins", _focal_calibration),
}

RELPLOT_WORDS = "kernel on a grid, mass lost at the boundary"


def relplot_smooth(scores: Array, residual: Array) -> float:
    return float("nan")
