"""Noise of calibration errors: each is a norm of residuals gathered in bins, and the noise of those sums is known.

An absolute value turns noise into error, so a calibration error is biased upwards: not at all where the gaps are far
from 0, most where they are 0, and nobody can know which. Each end of an interval takes the side that is safe.
"""

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.curve import Bins
from calibrant.core.statistics.estimate import Draws
from calibrant.core.statistics.sampling import NoisyValues


def l1_noise(field: NoisyValues, *, above_only: bool = False) -> Draws:
    """The noise of the sum of |v|; with `above_only` of the values above 0 alone."""
    g, noise = field.value, field.noise
    sign = np.where(g > 0, 1.0, 0.0) if above_only else np.sign(g)
    folded = np.maximum(noise, 0.0) if above_only else np.abs(noise)
    floor = folded.sum(axis=1)
    near = np.abs(g) < _sign_threshold(floor) * field.error
    lower = noise[:, ~near] @ sign[~near] + folded[:, near].sum(axis=1)
    return _draws(float(sign @ g), noise @ sign, lower, floor)


def l2_noise(field: NoisyValues, value: float | None = None) -> Draws:
    """The noise of the root of the sum of v squared, by the true norms that would show such a value.

    A true norm of x in some direction shows x^2 + 2 x (noise along it) + (noise)^2: for each draw, the square that is
    seen at one x. The direction is the one seen; since noise may hide the true one, the upper side also tries the
    direction that noise prefers, and takes the wider.
    """
    error = float(np.linalg.norm(field.value)) if value is None else value
    floor = np.linalg.norm(field.noise, axis=1)

    def off(direction: Array) -> Array:
        along = field.noise @ direction / (float(np.linalg.norm(direction)) or 1.0)
        inside = along**2 - floor**2 + error**2
        return np.where(inside > 0, error + along - np.sqrt(np.maximum(inside, 0.0)), error)

    observed, preferred = off(field.value), off(_noisiest(field.noise))
    wider = min(observed, preferred, key=lambda draws: float(np.quantile(draws, 0.025)))
    return _draws(error, wider, observed, floor)


def max_noise(field: NoisyValues, *, unequal: bool = False) -> Draws:
    """The noise of the largest |v|: any value within two standard errors of it may be the true largest.

    With `unequal` noise, a value that is smaller but far less certain may be it as well: the upper side is that of
    the value whose own upper end is the highest.
    """
    size, spread = np.abs(field.value), field.error
    top = int(size.argmax())
    highest = int((size + 2 * spread).argmax()) if unequal else top
    signed = field.noise * np.sign(field.value)
    near = size >= size[top] - 2 * np.maximum(spread, spread[top])
    floor = np.abs(field.noise).max(axis=1)
    upper = signed[:, highest] + (size[top] - size[highest])
    return _draws(float(size[top]), upper, signed[:, near].max(axis=1), floor)


def range_noise(field: NoisyValues) -> Draws:
    """The noise of the largest value minus the smallest: any within two standard errors of either may be it."""
    top, bottom = int(field.value.argmax()), int(field.value.argmin())
    noise = field.noise

    def near(end: int, sign: float) -> Array:
        off = sign * (field.value[end] - field.value)
        return np.asarray(off <= 2 * np.sqrt(((noise - noise[:, [end]]) ** 2).mean(axis=0)))

    lower = noise[:, near(top, 1.0)].max(axis=1) - noise[:, near(bottom, -1.0)].min(axis=1)
    value = float(field.value[top] - field.value[bottom])
    return _draws(value, noise[:, top] - noise[:, bottom], lower, np.ptp(noise, axis=1))


def quantile_noise(field: NoisyValues, share: Array, level: float) -> Draws:
    """The noise of the level that a share of |v| lies below, where v at each point stands for a share of the rows.

    Which points lie at that level is known only up to noise, and where many do their noise partly cancels. So each side
    also tries the noise of the one point that is nearest to the level, and takes the wider.
    """
    size, noise = np.abs(field.value), field.noise
    signed = noise * np.where(field.value < 0, -1.0, 1.0)

    def quantile(values: Array) -> Array:
        order = np.argsort(values, axis=1)
        below = np.cumsum(share[order], axis=1)
        place = (below < level * below[:, -1:] - 1e-12).sum(axis=1)
        return np.asarray(np.take_along_axis(values, np.take_along_axis(order, place[:, None], axis=1), axis=1)[:, 0])

    floor = quantile(np.abs(noise))
    near = size < _sign_threshold(np.abs(noise) @ share) * field.error
    value = float(quantile(size[None])[0])
    alone = signed[:, np.abs(size - value).argmin()]
    upper = min(quantile(size + signed) - value, alone, key=lambda draws: float(np.quantile(draws, 0.025)))
    lower = quantile(np.where(near, np.abs(noise), size + signed)) - quantile(np.where(near, 0.0, size)[None])
    lower = max(lower, alone, key=lambda draws: float(np.quantile(draws, 0.975)))
    return _draws(value, upper, lower, floor)


def per_share(bins: Bins) -> Array:
    """One over the share of rows in each bin, 0 where it is empty: residual sums times this are gaps."""
    return np.divide(bins.n, bins.count, out=np.zeros_like(bins.count), where=bins.filled).ravel()


def per_root_share(bins: Bins) -> Array:
    """Residual sums times this, squared and added up, are squared gaps averaged over the bins by their size."""
    return np.sqrt(per_share(bins))


def _draws(value: float, upper: Array, lower: Array, null: Array) -> Draws:
    """The noise of an error: upper as if no gap changed its sign, lower as if gaps near 0 were 0, null as if all."""
    method = f"normal noise of the residuals, {len(null):,} draws"
    return Draws(lower=lower, upper=upper, null=lambda: null, centre=value, method=method)


def _noisiest(noise: Array) -> Array:
    """The direction in which the draws spread most, by a few steps of the power method."""
    direction = np.sqrt((noise**2).sum(axis=0))
    for _ in range(20):
        direction = noise.T @ (noise @ direction)
        direction /= float(np.linalg.norm(direction)) or 1.0
    return np.asarray(direction)


def _sign_threshold(floor: Array) -> float:
    """The number of standard errors from 0 at which a gap's sign counts as known: 1 for up to 33 bins, more for many.

    Of many gaps of 0 some lie beyond any limit by chance, and their errors add up. The number of bins is the one that
    would make the noise floor as steady as it is, so unequal and dependent bins count for less.
    """
    spread = float(floor.var())
    bins = (np.pi / 2 - 1) * float(floor.mean()) ** 2 / spread if spread > 0 else 1.0
    return float(np.sqrt(max(2 * np.log(max(bins, 1.0) / 20), 1.0)))
