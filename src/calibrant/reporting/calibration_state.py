"""The state of the calibration: the ECE against chance, the side of the gap, the bins."""

from dataclasses import replace

import numpy as np

from calibrant.core.curves.binning import Binning, equal_width_edges
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import is_whole
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.clustered_shares import effective_rows
from calibrant.core.statistics.sampling import Sampling
from calibrant.core.statistics.shares import wilson
from calibrant.measures import make
from calibrant.measuring.calibration_test import calibration_test
from calibrant.measuring.estimating import estimate
from calibrant.measuring.measure import Measurement
from calibrant.reporting import contents_by_task
from calibrant.reporting.parts import Assessment, Bin, CalibrationState, Noise
from calibrant.reporting.segments import chance_of_gap

SURE = 0.05
CLOSE = 0.01  # an ECE below one point is small whatever the rows show
FEW_ROWS = 100  # below, even a perfect record proves little
NOISY = 0.05  # where chance alone can make an ECE of five points, rows are too few to tell


def assess(
    p: Predictions,
    *,
    ece: str = "ece",
    bins: int = 15,
    resamples: int | None = None,
    seed: int = 0,
    refinement: Measurement | None = None,
) -> Assessment:
    """Test these predictions against a perfectly calibrated model on as many rows; AUROC is measured if not known."""
    tested = assess_error(p, ece=ece, bins=bins, resamples=resamples, seed=seed)
    return replace(tested, refinement=refinement or measure_refinement(p, seed))


def assess_error(
    p: Predictions, *, ece: str = "ece", bins: int = 15, resamples: int | None = None, seed: int = 0
) -> Assessment:
    """The test alone, without the refinement."""
    test = calibration_test(p, ece, resamples=resamples, seed=seed)
    chance = chance_of_gap(p.score, p.outcome.astype(np.float64), p.weights, p.clusters)
    noise = Noise(test.statistic, test.expected, test.upper, test.p_value, chance)
    says, right = p.mean(p.score), p.mean(p.outcome)
    low, high = (float(end) for end in wilson(right, effective_rows(p)))
    return Assessment(
        state=state_of(p.n, says - right, noise),
        n=p.n,
        says=says,
        right=right,
        noise=noise,
        gap_low=says - high,
        gap_high=says - low,
        bins=bins_of(p.curve, bins),
        task=p.task,
        total=p.curve.total if is_whole(p.curve.weights) else None,
    )


def measure_refinement(p: Predictions, seed: int = 0) -> Measurement:
    """How well the scores tell outcomes apart."""
    chosen = make(name := contents_by_task.refinement(p.task))
    e = estimate(chosen, p, Sampling.of(p, seed=seed))
    return Measurement.from_estimate(name, e, n=p.n, k=p.k, definition=chosen.definition_for(p))


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
