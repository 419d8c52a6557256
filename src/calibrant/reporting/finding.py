"""What the rows show about predictions, and no more: the ECE against chance, the side of the gap, the bins."""

from dataclasses import dataclass

import numpy as np

from calibrant.core.curve import Curve, equal_width_edges
from calibrant.core.extras import Shape
from calibrant.core.predictions import Predictions
from calibrant.measuring.consistency import consistency
from calibrant.reporting.report import Bin, CalibrationState, Noise
from calibrant.reporting.segments import chance_of_gap

SURE = 0.05
CLOSE = 0.01  # an ECE below one point is small whatever the rows show
FEW_ROWS = 100  # below, even a perfect record proves little
NOISY = 0.05  # where chance alone can make an ECE of five points, rows are too few to tell


@dataclass(frozen=True)
class Finding:
    """The state of the calibration and the numbers it follows from."""

    state: CalibrationState
    n: int
    says: float  # mean confidence, or mean P(positive)
    right: float  # accuracy, or the share of positives
    noise: Noise
    bins: tuple[Bin, ...]
    shape: Shape = "classes"

    @property
    def gap(self) -> float:
        return self.says - self.right


def find(p: Predictions, *, ece: str = "ece", bins: int = 15, resamples: int | None = None, seed: int = 0) -> Finding:
    """Test these predictions against a perfectly calibrated model on as many rows."""
    found = consistency(p, ece, resamples=resamples, seed=seed)
    chance = chance_of_gap(p.score, p.hit.astype(np.float64), p.weights, p.clusters)
    noise = Noise(found.observed, found.expected, found.upper, found.p_value, chance)
    says, right = p.mean(p.score), p.mean(p.hit)
    state = state_of(p.n, says - right, noise)
    return Finding(state, p.n, says, right, noise, bins_of(p.curve, bins), p.shape)


def state_of(n: int, gap: float, noise: Noise) -> CalibrationState:
    """The ECE against chance first, then the side of the gap."""
    side = "" if noise.gap_p_value > SURE else "over" if gap > 0 else "under"
    if noise.p_value > SURE:
        if side:
            return "leaning over" if side == "over" else "leaning under"
        return "unsure" if noise.upper > NOISY or n < FEW_ROWS else "honest"
    if noise.observed < CLOSE:
        return "close"
    return "over" if side == "over" else "under" if side == "under" else "mixed"


def rows_of(weight: float) -> int:
    """Rows of a bin, or its weight to the nearest row; never none where there are some."""
    return max(1, round(weight)) if weight > 0 else 0


def bins_of(curve: Curve, bins: int) -> tuple[Bin, ...]:
    """The bars of the reliability diagram, equal width, empty ones included."""
    b, edges = curve.bins(bins), equal_width_edges(bins)
    return tuple(
        Bin(
            float(edges[i]),
            float(edges[i + 1]),
            rows_of(float(b.count[i])),
            float(b.confidence[i]),
            float(b.accuracy[i]),
        )
        for i in range(bins)
    )
