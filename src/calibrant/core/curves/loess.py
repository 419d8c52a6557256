"""Local quadratic regression (loess) of outcomes on scores, evaluated at every score.

A local quadratic reproduces every straight line, so its distance from the diagonal is the same regression of the
residuals, outcome minus score: a linear map of the residuals, which is what intervals need.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from weakref import WeakKeyDictionary

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.curve import BLOCK as LONG_BLOCK
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import is_whole
from calibrant.core.parallel import pieces

DIRECT = 20_000  # distinct scores up to which each is a point of its own
CELLS = 1_000  # of equal width, and as many of equal weight: above that, rows between two edges are one point
BLOCK = 256  # places evaluated together
ALIKE = 1.1  # their neighbourhoods differ in width, and their scores from each other, by no more than this factor
POWERS = 8  # sums of one regression: five of the weights, three of the residuals
SINGULAR = 1e-11  # of an eigenvalue to the largest: below, a neighbourhood has too few distinct scores for a quadratic

_KEPT: WeakKeyDictionary[Curve, dict[float, Array]] = WeakKeyDictionary()  # of curves that are still in use


@dataclass(frozen=True, eq=False)
class Points:
    """Scores in ascending order, each different from the next, with the weight and the mean residual at each."""

    at: Array  # (m,)
    weight: Array  # (m,)
    residual: Array  # (m,) outcome minus score
    ends: Ints  # (m,) position just behind the sorted rows of each

    @property
    def point_of(self) -> Ints:
        """The point that each sorted row belongs to, (n,)."""
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))


def loess_gaps(curve: Curve, span: float) -> Array:
    """The local regression minus the score, at every sorted row of the curve. A curve is smoothed once, then kept.

    Up to DIRECT distinct scores the regression is evaluated at each. Above, rows are gathered in up to 2 CELLS cells
    first, the regression is evaluated at the mean score of each, and interpolated linearly.

    >>> loess_gaps(Curve.sort(np.array([0.2, 0.2, 0.5, 0.5]), np.array([0.0, 1, 1, 1])), 0.75).round(6)
    array([0.3, 0.3, 0.5, 0.5])
    """
    cache = _KEPT.setdefault(curve, {})
    if span not in cache:
        points = gather_points(curve, DIRECT, CELLS)
        direct = len(points.at) == len(curve.group_ends)
        at = points.at if direct else np.concatenate([curve.scores[:1], points.at, curve.scores[-1:]])
        gaps = _fit(points, at, neighbourhoods(curve, at, span))
        cache[span] = gaps[points.point_of] if direct else np.interp(curve.scores, at, gaps)
    return cache[span]


def gather_points(curve: Curve, most: int, cells: int) -> Points:
    """One point for each distinct score or, where these are more than `most`, for each cell of neighbouring ones."""
    ends = curve.group_ends
    direct = len(ends) <= most
    if not direct:
        inner = np.arange(1, cells) / cells
        heaviest = np.searchsorted(curve.weight_sum / curve.total, inner) - 1  # rows at which the shares are reached
        heavy = np.searchsorted(curve.scores, curve.scores[heaviest], side="right")
        wide = np.searchsorted(curve.scores, inner)
        ends = np.unique(np.concatenate([heavy, wide[wide > 0], [curve.n]]))
    weight, score, outcome = curve.sums_between(np.append(0, ends))
    felt = weight > 0  # a weight far below the total is lost in its sums
    last_scores = curve.scores[ends - 1]
    at = last_scores if direct else np.divide(score, weight, out=last_scores.copy(), where=felt)
    return Points(at, weight, np.divide(outcome, weight, out=at.copy(), where=felt) - at, ends)


def neighbourhoods(curve: Curve, at: Array, span: float) -> Array:
    """Half the width of the neighbourhood of each place: how far the nearest rows reach that hold a share of `span`.

    Where weights count rows, a neighbourhood holds a whole number of them.
    """
    width = span * curve.total
    if is_whole(curve.weights):
        width = max(float(np.floor(width + 1e-5)), 1.0)
    ends, weight_sum = curve.group_ends, curve.weight_sum

    def sides(begin: Ints) -> tuple[Array, Array]:
        """Both ends of the neighbourhoods that begin at these groups of equal scores."""
        below = weight_sum[np.where(begin > 0, ends[begin - 1], 0)]
        last = np.searchsorted(weight_sum[1:], below + width * (1 - 1e-12))
        right = np.where(last < curve.n, curve.scores[np.minimum(last, curve.n - 1)], np.inf)
        return curve.scores[ends[begin] - 1], right

    # It begins where its two ends are equally far, or just before: the sum of both ends never falls.
    first = np.zeros(len(at), dtype=np.int64)
    for part in pieces(len(ends), LONG_BLOCK):
        left, right = sides(np.arange(part.start, part.stop))
        first += np.searchsorted(left + right, 2 * at)
    reach = np.full(len(at), np.inf)
    for begin in (np.minimum(first, len(ends) - 1), np.maximum(first - 1, 0)):
        left, right = sides(begin)
        reach = np.minimum(reach, np.maximum(at - left, right - at))
    return np.asarray(np.maximum(reach, 1e-300))


def smoother(points: Points, at: Array, reach: Array) -> Array:
    """The matrix (b, m) that takes residuals at the points to the local regression at each place."""
    u = np.clip((points.at - at[:, None]) / reach[:, None], -1.0, 1.0)
    kernel = _tricube(u) * points.weight
    powers = np.stack([np.ones_like(u), u, u * u])  # (3, b, m)
    moments = np.einsum("ij,aij,bij->iab", kernel, powers, powers, optimize=True)
    return np.asarray(np.einsum("ia,aij->ij", _first_row(moments), powers) * kernel)


def _fit(points: Points, at: Array, reach: Array) -> Array:
    """The local quadratic regression of the residuals at each place, by tricube weights within `reach` of it.

    Within one side of a neighbourhood the tricube weight is a polynomial of the distance. So the rows that lie on the
    same side of all places of a block, and in all their neighbourhoods, take part by sums of powers; only the rows at
    the ends of the neighbourhoods and between the places are weighed one by one.
    """
    fitted, weighed = np.empty(len(at)), points.weight * points.residual
    for block in _blocks(at, reach):
        here, h = at[block], reach[block]
        x, unit = points.at - here[0], h[0]
        shift, scale = (here - here[0]) / unit, unit / h
        ends = [(here - h).min(), (here - h).max(), here[0], here[-1], (here + h).min(), (here + h).max()]
        first, low, left, right, high, last = np.searchsorted(x, np.array(ends) - here[0], side="left")
        low, right, last = min(low, left), max(right + 1, left), last + 1  # the last place is between the places
        high = max(high, right)
        sums = np.zeros((len(here), POWERS))
        for sign, part in ((-1.0, slice(low, left)), (1.0, slice(right, high))):
            z = x[part] / unit
            of_weights = _move_sums(_power_sums(z, points.weight[part], 14), shift, scale)
            of_residuals = _move_sums(_power_sums(z, weighed[part], 12), shift, scale)
            for power, factor in zip((0, 3, 6, 9), (1.0, -3 * sign, 3.0, -sign), strict=True):
                sums[:, :5] += factor * of_weights[:, power : power + 5]
                sums[:, 5:] += factor * of_residuals[:, power : power + 3]
        for part in (slice(first, low), slice(left, right), slice(high, last)):
            u = np.clip((x[part] - (here - here[0])[:, None]) / h[:, None], -1.0, 1.0)
            kernel = _tricube(u)
            for power in range(5):
                sums[:, power] += kernel @ points.weight[part]
                if power < 3:
                    sums[:, 5 + power] += kernel @ weighed[part]
                kernel *= u
        square = sums[:, np.arange(3)[:, None] + np.arange(3)]  # (b, 3, 3)
        fitted[block] = np.einsum("ia,ia->i", _first_row(square), sums[:, 5:])
    return fitted


def _blocks(at: Array, reach: Array) -> Iterator[slice]:
    """Places that lie close together and have neighbourhoods of like width, so that they can share sums of powers."""
    start = 0
    while start < len(at):
        stop = min(start + BLOCK, len(at))
        while stop - start > 1:
            h = reach[start:stop]
            if h.max() <= ALIKE * h.min() and at[stop - 1] - at[start] <= (ALIKE - 1) * h.min():
                break
            stop = start + (stop - start) // 2
        yield slice(start, stop)
        start = stop


def _tricube(u: Array) -> Array:
    """(1 - |u|^3)^3 within 1, computed in place: this is where the time goes."""
    size = np.abs(u)
    np.minimum(size, 1.0, out=size)
    cube = size * size
    cube *= size
    np.subtract(1.0, cube, out=cube)
    np.multiply(cube, cube, out=size)
    size *= cube
    return size


def _power_sums(z: Array, weights: Array, count: int) -> Array:
    """Sums of weights * z^j for j from 0, (count,): the tricube weight has nine powers, a quadratic regression four."""
    term, sums = weights.copy(), np.empty(count)
    for j in range(count):
        sums[j] = term.sum()
        term *= z
    return sums


def _move_sums(sums: Array, by: Array, scale: Array) -> Array:
    """Sums of powers z^j, (m,), as sums of (scale (z - by))^j for each of b places, (b, m)."""
    count = len(sums)
    power = np.arange(count)
    binomial = np.array([[comb(j, i) for i in range(count)] for j in range(count)], dtype=np.float64)
    by_powers = (-by)[:, None] ** power  # (b, m)
    shifted = by_powers[:, np.maximum(power[:, None] - power, 0)] * binomial  # (b, j, i)
    return np.asarray((shifted @ sums) * scale[:, None] ** power)


def _first_row(moments: Array) -> Array:
    """First rows (b, 3) of the inverses of (b, 3, 3), pseudo-inverses where too few distinct scores are near."""
    return np.asarray(np.linalg.pinv(moments, rcond=SINGULAR, hermitian=True)[:, 0])
