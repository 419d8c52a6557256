"""The one place that chooses how sure a number is: the estimate of a measure, and that of a difference."""

from dataclasses import replace

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Estimate, Widened
from calibrant.core.statistics.fewest_rows import too_few_rows
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures import UNDEFINED, Measure
from calibrant.measuring.single_outcome import single_outcome, values_of_unseen

MOST = 1_000_000


def estimate(m: Measure, p: Predictions, rows: Sampling) -> Estimate:
    """The value of a measure with its noise, by the best method that it has at this n, or with the reason for none.

    No resamples are asked for where the value alone is wanted.
    """
    if rows.resamples == 0:
        return Estimate(value=m(p))
    if obstacle := interval_obstacle(m, p):
        value = m(p)
        return Estimate(value=value, reason=obstacle if np.isfinite(value) else UNDEFINED)
    whole = m.estimate(p, rows)
    if not np.isfinite(whole.value):
        return Estimate(value=whole.value, reason=UNDEFINED)
    if whole.noise is None or m.fixed_maps or not single_outcome(p):
        return whole
    return replace(whole, noise=Widened(noise=whole.noise, unseen=values_of_unseen(m, p, whole.value, rows)))


def difference(m: Measure, a: Predictions, b: Predictions, rows: tuple[Sampling, Sampling]) -> Estimate:
    """The difference b - a of a measure (of its distances from an ideal), for rows of `Sampling.pair`."""
    reason = interval_obstacle(m, a) or interval_obstacle(m, b)
    if reason is None:
        return m.estimate_difference(a, b, rows)
    of_a, of_b = m(a), m(b)
    value = of_b - of_a if m.ideal is None else abs(of_b - m.ideal) - abs(of_a - m.ideal)
    return Estimate(value=value, terms=(of_a, of_b), reason=reason)


def interval_obstacle(m: Measure, p: Predictions) -> str | None:
    """Why these rows give this measure no interval, in words; None where they do."""
    if m.without_interval:
        return m.without_interval
    if p.clusters is None:
        return too_few_rows(p.n_effective)
    return too_few_rows(int(p.clusters.max()) + 1, clusters=True)


def check_resamples(resamples: int | None, *, least: int = 0) -> None:
    if resamples is not None and not least <= resamples <= MOST:
        fix = "use 1000: more only smooths the third digit of an interval"
        raise InputError("resamples", expected=f"{least} to {MOST:,}", got=f"{resamples:,}", fix=fix)
