"""Confidence limits of a measure: by known noise, by many parts of many rows, or by resampled rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Integers
from calibrant.core.curves.curve import LONG, Curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.bootstrap import Interval, OnDone, draw
from calibrant.core.statistics.fewest_rows import too_few_rows
from calibrant.core.statistics.label_noise import LabelNoise, correct_probs, draw_labels
from calibrant.core.statistics.residual_noise import Sampling, Spread
from calibrant.measures import BinnedMeasure, ClassMeasure, Measure, OfCurve, RowMeasure
from calibrant.measuring.alike_outcomes import outcomes_alike, widen

DRAWS = 1000  # of normal noise: they cost so little that nobody need choose
MANY_ROWS = 100_000  # from here on values on many parts tell the noise, or fewer resamples must do
PARTS = 100
WORK = 1000 * MANY_ROWS  # rows that resampling may touch
FEWEST = 100
MOST = 1_000_000
ZERO_RATIO = "a ratio of 0 has no interval: not one event was seen"
READ_OFF_CURVES = (OfCurve.__call__, BinnedMeasure.__call__)  # measures that may be read off a curve of some rows
ROUNDING = 1e-12  # of a value: intervals no wider than that have no width
NO_SPREAD = "no interval: every row gives the same value, so that these rows do not show how far it may be off"


@dataclass(frozen=True)
class Limits:
    """Confidence limits, each missing the true value with the chance asked for, and how they were computed.

    Where there is no interval both ends are None, and `reason` says why.
    """

    low: float | None = None
    high: float | None = None
    how: str | None = None
    reason: str | None = None


def find_limits(
    m: Measure,
    p: Predictions,
    *,
    tail: float,
    resamples: int | None = None,
    seed: int = 0,
    progress: OnDone | None = None,
    draws: Array | None = None,
    spread: Spread | None = None,
) -> Limits:
    """Compute the limits by the best method that this measure has at this n.

    `draws` are its values on resamples and `spread` is the noise of its residuals, if known already.
    """
    value = m(p)
    if not np.isfinite(value):
        return Limits(reason="undefined on these rows")
    if reason := why_no_interval(m, p):
        return Limits(reason=reason)
    if m.of_ratio and value <= 0:
        return Limits(reason=ZERO_RATIO)
    interval, how = _interval(m, p, value, tail, resamples, seed, progress, draws, spread)
    if outcomes_alike(p) and not m.fixed_maps:
        interval, how = widen(m, p, interval, tail, seed), f"{how}; widened by outcomes that these rows do not have"
    ends = np.clip((interval.low, interval.high), *m.bounds)
    low, high = float(min(ends[0], value)), float(max(ends[1], value))
    return Limits(reason=NO_SPREAD) if high - low <= ROUNDING * abs(value) else Limits(low, high, how)


def _interval(
    m: Measure,
    p: Predictions,
    value: float,
    tail: float,
    resamples: int | None,
    seed: int,
    progress: OnDone | None,
    draws: Array | None,
    spread: Spread | None,
) -> tuple[Interval, str]:
    """The interval, and how it was computed."""
    if spread is None:
        spread = m.spread(p, sampling(p, seed))
    if spread is not None:
        interval = spread.ends(tail)
        if interval.low > 0 and isinstance(m, ClassMeasure) and m.has_few_rows(p) and m.by_labels(p):
            interval = Interval(min(interval.low, noise_of_labels(m, seed, p)[0].low(tail)), interval.high)
        return interval, f"normal noise of the residuals, {len(spread.floor):,} draws"
    influence = m.influence(p)
    if influence is not None:
        error, units = standard_error(influence, p)
        return normal_interval(m, value, error, units, tail), "normal, robust standard error"
    if in_parts(m, p, resamples):
        half = half_width(values_on_parts(m, p, seed, progress), tail)
        return Interval(value - half, value + half), f"spread over {PARTS} random parts of the rows"
    if draws is None:
        size = affordable(m, p.n) if resamples is None else resamples
        if p.clusters is not None and isinstance(m, RowMeasure) and type(m).resample is RowMeasure.resample:
            draws = _means_of_clusters(m.numbers(p), p.clusters, p.weights, size, seed, progress)
        else:
            draws = draw(lambda counts: m.resample(p, counts), p.n, size, seed, progress, p.clusters)
    return m.bootstrap(p, draws, tail, seed), f"basic bootstrap, {len(draws):,} resamples"


def standard_error(influence: Array, p: Predictions) -> tuple[float, int]:
    """Standard error of a value from the influence of each row, and the number of independent rows or clusters."""
    if p.clusters is not None:
        influence = np.bincount(p.clusters, influence).astype(np.float64)
    units = len(influence) if p.clusters is not None else int(p.effective)
    return float(np.sqrt((influence**2).sum() * units / max(units - 1, 1))), units


def normal_interval(m: Measure, value: float, error: float, units: int, tail: float) -> Interval:
    """Interval by Student's distribution; of a ratio, symmetric in its logarithm."""
    from scipy.special import stdtrit

    half = -float(stdtrit(max(units - 1, 1), tail)) * error
    if m.of_ratio:
        factor = float(np.exp(min(half / value, 700.0)))
        return Interval(value / factor, value * factor)
    return Interval(value - half, value + half)


def why_no_interval(m: Measure, p: Predictions) -> str | None:
    """Why these rows give this measure no interval, in words; None where they do."""
    if m.without_interval:
        return m.without_interval
    if p.clusters is None:
        return too_few_rows(p.effective)
    return too_few_rows(int(p.clusters.max()) + 1, clusters=True)


def check_resamples(resamples: int | None, *, least: int = 0) -> None:
    if resamples is not None and not least <= resamples <= MOST:
        fix = "use 1000: more only smooths the third digit of an interval"
        raise InputError("resamples", expected=f"{least} to {MOST:,}", got=f"{resamples:,}", fix=fix)


def affordable(m: Measure, n: int) -> int:
    """The number of resamples of n rows: as many as the measure asks for, fewer for very many rows."""
    return max(min(m.resamples, WORK // n), min(m.resamples, FEWEST))


def sampling(p: Predictions, seed: int, *, paired: bool = False) -> Sampling:
    """The sampling of the rows of p, for noise of residuals."""
    return Sampling(n=p.n, draws=DRAWS, seed=seed, weights=p.weights, clusters=p.clusters, paired=paired)


def noise_of_labels(m: ClassMeasure, seed: int, *models: Predictions) -> list[LabelNoise]:
    """Noise of models on the same rows, from labels drawn once from the mean of their corrected probabilities."""
    probs = np.asarray(sum(correct_probs(p) for p in models)) / len(models)
    labels = draw_labels(probs, seed)
    return [
        m.label_noise(p, probs, labels, Sampling(n=p.n, draws=len(labels), seed=seed, weights=p.weights))
        for p in models
    ]


def in_parts(m: Measure, p: Predictions, resamples: int | None) -> bool:
    """Whether the interval comes from parts of the rows: very many rows, and a measure that noise does not bias."""
    units = p.n if p.clusters is None else int(p.clusters.max()) + 1
    return units >= MANY_ROWS and resamples is None and not m.of_calibration


def values_on_parts(m: Measure, p: Predictions, seed: int, progress: OnDone | None = None) -> Array:
    """The measure on PARTS random parts of the rows; the same parts for the same seed.

    Means of rows and numbers of the curve are read off what is known of all rows, so nothing is computed twice; of long
    curves only the means, because the order of all rows takes much memory.
    """
    units = p.n if p.clusters is None else int(p.clusters.max()) + 1
    part_of = np.empty(units, dtype=np.int16)
    for i, part in enumerate(np.array_split(np.random.default_rng(seed).permutation(units), PARTS)):
        part_of[part] = i
    del part  # which holds all of the permutation
    if p.clusters is not None:
        part_of = part_of[p.clusters]
    if isinstance(m, RowMeasure) and type(m).__call__ is RowMeasure.__call__:
        values = _means_of_parts(m.numbers(p), part_of, p.weights)
    elif isinstance(m, OfCurve) and type(m).__call__ in READ_OFF_CURVES and p.weights is None and p.n < LONG:
        values = _curves_of_parts(m, m.curve(p), part_of)
    else:
        return np.array([_step(m(p.take(np.flatnonzero(part_of == i))), progress) for i in range(PARTS)])
    if progress:
        progress(PARTS)
    return values


def _means_of_clusters(
    rows: Array, clusters: Integers, weights: Array | None, resamples: int, seed: int, progress: OnDone | None
) -> Array:
    """Means on resampled clusters, from one sum for each of them."""
    above, below = np.bincount(clusters, rows if weights is None else weights * rows), np.bincount(clusters, weights)
    return draw(lambda counts: counts @ above / (counts @ below), len(below), resamples, seed, progress)


def _means_of_parts(rows: Array, part_of: npt.NDArray[np.int16], weights: Array | None) -> Array:
    if weights is None:
        return np.asarray(np.bincount(part_of, rows, PARTS) / np.bincount(part_of, minlength=PARTS))
    return np.asarray(np.bincount(part_of, weights * rows, PARTS) / np.bincount(part_of, weights, PARTS))


def _curves_of_parts(m: OfCurve, curve: Curve, part_of: npt.NDArray[np.int16]) -> Array:
    """The measure on the curve of each part; rows of a part keep their order, so that its curve is sorted."""
    of_sorted = part_of[curve.order]
    grouped = np.argsort(of_sorted, kind="stable")
    ends = np.cumsum(np.bincount(of_sorted, minlength=PARTS))[:-1]
    return np.array([m.on(Curve(curve.scores[i], curve.outcomes[i], i)) for i in np.split(grouped, ends)])


def _step(value: float, progress: OnDone | None) -> float:
    if progress:
        progress(1)
    return value


def half_width(values: Array, tail: float) -> float:
    """Half the width of the interval of the mean of values that are nearly normal."""
    from scipy.special import stdtrit

    return float(-stdtrit(len(values) - 1, tail) * np.nanstd(values, ddof=1) / np.sqrt(len(values)))
