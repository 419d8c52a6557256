"""ECE, smooth ECE and bins of equal mass as peers compute them, and what differs from ours, in words.

A dialect of the ECE is a precision and a rule that gives every confidence its bin: all peers then add up the
same thing. Sums run in float64 here; peers that add up in float32 are reproduced to about 1e-5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.curves.binning import Closed, EdgeRule, SortedScores, equal_width_edges, open_ends
from calibrant.core.curves.curve import Curve

Dialect = Literal[
    "torchmetrics",
    "torch_uncertainty",
    "probmetrics",
    "netcal",
    "uncertainty_calibration",
    "relplot",
    "focal_calibration",
    "onmixup",
]

MassRule = Literal["sort", "midpoint", "interp", "stride"]
BinOf = Callable[[Floats, int], Ints]


@dataclass(frozen=True)
class Rule:
    """Settings of one peer's ECE."""

    words: str  # what differs from ours
    bin_of: BinOf  # the bin of each confidence; -1 is never summed
    precision: Literal["float32", "float64"] = "float64"

    def ece(self, curve: Curve, bins: int) -> float:
        scores: Floats = curve.scores.astype(self.precision)
        index = self.bin_of(scores, bins)
        used = index >= 0
        residual = np.bincount(index[used], ((scores - curve.outcomes) * curve.weights)[used])
        return float(np.abs(residual).sum() / curve.total)


def _between(edges: Callable[[int], Floats], closed: Closed, *, ends_join: bool) -> BinOf:
    """Bins between edges. A confidence on the open end joins the outermost bin or lies outside all of them:
    0 then gets -1 and 1 a bin of its own."""
    side: Literal["left", "right"] = "right" if closed == "left" else "left"

    def bin_of(scores: Floats, bins: int) -> Ints:
        cuts = edges(bins)
        return cuts[1:-1].searchsorted(scores, side) if ends_join else cuts.searchsorted(scores, side) - 1

    return bin_of


def _numpy_edges(bins: int) -> Floats:
    """Bin edges of np.linspace, which multiplies by 1/M, so 3/10 comes out as 0.30000000000000004."""
    return np.linspace(0, 1, bins + 1)


def _torch_edges(bins: int) -> Floats:
    """Bin edges of torch.linspace in float32: steps up from 0 in the lower half, down from 1 in the upper half."""
    steps = np.arange(bins + 1)
    up = steps * np.float64(np.float32(1) / np.float32(bins))
    return np.where(steps < (bins + 1) // 2, up, 1 - up[::-1]).astype(np.float32)


def _quotient(scores: Floats, bins: int) -> Ints:
    return (scores / (1 / bins)).astype(np.int64)


def _percent(scores: Floats, bins: int) -> Ints:
    index = np.floor_divide(scores * np.float32(100), np.float32(100 / bins)).astype(np.int64)
    return np.where(index < bins, index, -1)


_TORCHMETRICS = _between(_torch_edges, "left", ends_join=False)

DIALECTS: dict[str, Rule] = {
    "torchmetrics": Rule(
        "float32; left-closed; a confidence of exactly 1 has a bin of its own", _TORCHMETRICS, "float32"
    ),
    "torch_uncertainty": Rule(
        "torchmetrics itself: float32; left-closed; a confidence of exactly 1 has a bin of its own",
        _TORCHMETRICS,
        "float32",
    ),
    "probmetrics": Rule(
        "torchmetrics after clamping probabilities at 1e-7: float32; left-closed; no confidence reaches 1",
        _between(_torch_edges, "left", ends_join=True),
        "float32",
    ),
    "netcal": Rule("left-closed; edges m * (1/M) instead of m/M", _between(_numpy_edges, "left", ends_join=True)),
    "uncertainty_calibration": Rule("the same bins as ours", _between(equal_width_edges, "right", ends_join=True)),
    "relplot": Rule(
        "left-closed, by the whole part of c / (1/M); a confidence of exactly 1 has a bin of its own",
        _quotient,
    ),
    "focal_calibration": Rule(
        "float32; right-closed as ours; a confidence of exactly 0 is dropped",
        _between(_torch_edges, "right", ends_join=False),
        "float32",
    ),
    "onmixup": Rule(
        "float32; left-closed, by 100c // (100/M); a confidence of exactly 1 is dropped", _percent, "float32"
    ),
}


def _midpoint_edges(scores: SortedScores, bins: int) -> Array:
    """Edges midway between the last score of a share and the first of the next: equal scores stay together."""
    places = scores.places(bins)[1:-1]
    return open_ends((scores.value(places, "left") + scores.value(places)) / 2)


def _interpolated_edges(scores: SortedScores, bins: int) -> Array:
    """Edges interpolated between scores: they begin at the smallest, which right-closed bins drop."""
    places = np.linspace(0, scores.total, bins + 1)
    low = np.floor(places)
    first = scores.value(low)
    return np.asarray(first + (places - low) * (scores.value(low + 1) - first))


def _stride_edges(scores: SortedScores, bins: int) -> Array:
    """Edges at every floor(n / bins)-th score: the last bin is the largest."""
    return open_ends(scores.value(np.arange(1, bins) * np.floor(scores.total / bins)))


MASS_RULES: dict[MassRule, EdgeRule | None] = {
    "sort": None,
    "midpoint": _midpoint_edges,
    "interp": _interpolated_edges,
    "stride": _stride_edges,
}

RELPLOT_WORDS = (
    "on a grid whose end points the reflection does not double, so confidences near 0 and 1 weigh half; "
    "bandwidth by 10 halvings"
)
RELPLOT_HALVINGS = 10
RELPLOT_NARROWEST = 0.001
RELPLOT_FLOOR = 1e-4  # added to the density, where one sample counts 1


def relplot_smooth(scores: Array, weights: Array, residual: Array) -> float:
    """relplot's smECE of sorted confidences, their weights (ones), and their weighted (confidence - outcome) / n."""
    low, high = 0.0, 1.0
    for _ in range(RELPLOT_HALVINGS):
        middle = (low + high) / 2
        if middle < RELPLOT_NARROWEST or middle < _relplot_error(scores, weights, residual, middle):
            low = middle
        else:
            high = middle
    return _relplot_error(scores, weights, residual, high)


def _relplot_error(scores: Array, weights: Array, residual: Array, sigma: float) -> float:
    n, points = weights.sum(), max(2000, round(20 / sigma)) // 2 + 1
    grid = np.linspace(0, 1, points)
    read_at = np.linspace(0, 1, max(200, round(10 / sigma)))
    kernel = np.exp(-0.5 * ((grid - 0.5) / sigma) ** 2) / (np.sqrt(2 * np.pi) * sigma)
    cell = np.minimum((scores * (points - 1)).astype(np.int64), points - 2)
    beyond = scores * (points - 1) - cell  # how far each score is on its way to the next grid point

    def smooth(weights: Array) -> Array:
        mass = np.bincount(cell, (1 - beyond) * weights, points)
        mass += np.bincount(cell + 1, beyond * weights, points)
        # "reflect" does not repeat the end points: this is where mass is lost
        mirrored = np.pad(mass, (points - 1 - points // 2, points // 2), mode="reflect")
        return np.interp(read_at, grid, np.convolve(mirrored, kernel, "valid"))

    density = smooth(weights) + RELPLOT_FLOOR
    return float(n * np.abs(smooth(residual)).sum() / density.sum())
