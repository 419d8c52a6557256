"""CORP: the isotonic regression of outcomes on scores, its consistency band, and the parts of a proper score."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.core.arrays import Array, Integers
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.loess import gather_points
from calibrant.core.statistics.clustered_outcomes import ClusteredOutcomes
from calibrant.core.statistics.isotonic import fit_isotonic

FLOOR = 1e-12  # of probabilities in the log score
BAND_POINTS = 2_000  # distinct scores up to which drawn outcomes are fitted at each; above, at as many cells

Score = Literal["brier", "log"]


@dataclass(frozen=True)
class CorpTerms:
    """A mean score as miscalibration - discrimination + uncertainty, exactly."""

    score: float
    miscalibration: float  # what recalibration by isotonic regression would gain
    discrimination: float  # what the recalibrated scores gain over the share of events
    uncertainty: float  # the score of the share of events


def corp_terms(curve: Curve, kind: Score = "brier") -> CorpTerms:
    """The parts of the mean Brier or log score.

    >>> curve = Curve.sort(np.array([0.2, 0.2, 0.8, 0.8]), np.array([0.0, 1, 1, 1]))
    >>> terms = corp_terms(curve)  # recalibrated: 1/2 and 1; Brier scores 0.19, 0.125 and 0.1875
    >>> round(terms.miscalibration, 6), round(terms.discrimination, 6), round(terms.uncertainty, 6)
    (0.065, 0.0625, 0.1875)
    """
    x, fitted = fit_isotonic(curve.scores, curve.outcomes, curve.weights)
    mean = float(curve.weights @ curve.outcomes / curve.total)
    forecasts = (curve.scores, np.interp(curve.scores, x, fitted), np.full(curve.n, mean))
    own, recalibrated, constant = (_mean_score(curve, forecast, kind) for forecast in forecasts)
    return CorpTerms(own, own - recalibrated, constant - recalibrated, constant)


def consistency_band(
    curve: Curve, at: Array, *, level: float, resamples: int, seed: int, clusters: Integers | None = None
) -> tuple[Array, Array]:
    """The pointwise band of isotonic fits of calibrated scores: outcomes are drawn from the scores and fitted again.

    Rows of one cluster (of each sorted row) are drawn together.
    """
    rng, points = np.random.default_rng(seed), gather_points(curve, BAND_POINTS, BAND_POINTS // 2)
    starts = np.append(0, points.ends[:-1])
    samples = None
    if clusters is not None:
        samples = ClusteredOutcomes.estimate(curve.scores, curve.outcomes, clusters, curve.weights, rng).draws(
            resamples, rng
        )
    fits = np.empty((resamples, len(at)))
    for i in range(resamples):
        outcomes = (rng.random(curve.n) < curve.scores) if samples is None else next(samples)
        means = np.add.reduceat(outcomes * curve.weights, starts) / points.weight
        fits[i] = np.interp(at, *fit_isotonic(points.at, means, points.weight))
    low, high = np.quantile(fits, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _mean_score(curve: Curve, forecast: Array, kind: Score) -> float:
    y = curve.outcomes
    if kind == "brier":
        values = (forecast - y) ** 2
    else:
        p = np.clip(forecast, FLOOR, 1.0)
        q = np.clip(1 - forecast, FLOOR, 1.0)
        values = -(y * np.log(p) + (1 - y) * np.log(q))
    return float(curve.weights @ values / curve.total)
