"""The state of the calibration: the ECE against chance, the side of the gap, the bins."""

from dataclasses import dataclass

import numpy as np

from calibrant.core.curves.binning import Binning, equal_width_edges
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import is_whole
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures import make
from calibrant.measuring.calibration_test import calibration_test
from calibrant.measuring.estimating import estimate
from calibrant.reporting.parts import Bin, CalibrationState, Noise
from calibrant.reporting.segments import chance_of_gap

SURE = 0.05
CLOSE = 0.01  # an ECE below one point is small whatever the rows show
FEW_ROWS = 100  # below, even a perfect record proves little
NOISY = 0.05  # where chance alone can make an ECE of five points, rows are too few to tell


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The state of the calibration and the numbers it follows from."""

    state: CalibrationState
    n: int
    says: float  # mean confidence, or mean P(positive)
    right: float  # accuracy, or the share of positives
    noise: Noise
    bins: tuple[Bin, ...]
    task: Task = "multiclass"
    total: float | None = None  # rows, where weights count them; None where weights are shares
    reversed_auc: float | None = None  # ROC AUC, where positives have significantly lower scores than negatives

    @property
    def gap(self) -> float:
        return self.says - self.right


def assess(
    p: Predictions, *, ece: str = "ece", bins: int = 15, resamples: int | None = None, seed: int = 0
) -> Assessment:
    """Test these predictions against a perfectly calibrated model on as many rows."""
    test = calibration_test(p, ece, resamples=resamples, seed=seed)
    chance = chance_of_gap(p.score, p.outcome.astype(np.float64), p.weights, p.clusters)
    noise = Noise(test.statistic, test.expected, test.upper, test.p_value, chance)
    says, right = p.mean(p.score), p.mean(p.outcome)
    return Assessment(
        state=state_of(p.n, says - right, noise),
        n=p.n,
        says=says,
        right=right,
        noise=noise,
        bins=bins_of(p.curve, bins),
        task=p.task,
        total=p.curve.total if is_whole(p.curve.weights) else None,
        reversed_auc=_reversed_auc(p, seed) if p.task == "binary" else None,
    )


def _reversed_auc(p: Predictions, seed: int) -> float | None:
    """The ROC AUC, where its interval lies below one half; else None."""
    chosen = make("roc_auc")
    if not (auc := chosen(p)) < 0.5:  # undefined where all rows are of one class
        return None
    high = estimate(chosen, p, Sampling.of(p, seed=seed)).bound("high", 1 - SURE / 2)
    return auc if high is not None and high < 0.5 else None


def state_of(n: int, gap: float, noise: Noise) -> CalibrationState:
    """The state of the calibration: by the ECE against chance first, then by the side of the gap."""
    over = gap > 0
    gap_is_significant = noise.gap_p_value <= SURE
    if noise.p_value != noise.p_value:
        return "untested" if not gap_is_significant else "over" if over else "under"
    if noise.p_value > SURE:
        if gap_is_significant:
            return "perhaps_over" if over else "perhaps_under"
        return "inconclusive" if noise.upper > NOISY or n < FEW_ROWS else "calibrated"
    if noise.observed < CLOSE:
        return "close"
    return "mixed" if not gap_is_significant else "over" if over else "under"


def rows_of(weight: float) -> int:
    """The number of rows of a bin, or its weight rounded; at least 1 where the bin is not empty."""
    return max(1, round(weight)) if weight > 0 else 0


def bins_of(curve: Curve, bins: int) -> tuple[Bin, ...]:
    """The bars of the reliability diagram, equal width, empty ones included."""
    b, edges = curve.bins(Binning(bins)), equal_width_edges(bins)
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
