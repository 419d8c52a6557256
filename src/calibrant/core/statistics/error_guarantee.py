"""Guarantee of an error rate: the most of the surest rows whose error rate is bounded with confidence.

Fixed-sequence testing from four starts (after Angelopoulos, Bates, Candès, Jordan, Lei, 2021): rows are taken from the
surest on. For the m surest with e errors, P(Bin(m, r) <= e) is a p-value of "the error rate is above r". Which rows
these are depends on the scores alone, so each test is valid; each start walks on to more rows while its tests reject.
"""

from dataclasses import dataclass
from math import ceil, log

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.curves.curve import Curve
from calibrant.core.text.number_format import two_figures

STARTS = 4
STEPS = 100  # of a walk over all rows
SAME = 1e-9  # scores that differ by less, relative to their size, are equal: other processors must decide alike
MOST_ROWS = 1000  # times as many rows as there are: beyond, more rows are no answer


@dataclass(frozen=True, kw_only=True)
class AnsweredRows:
    """The surest rows that a bound on their error rate holds for; none where `threshold` is None."""

    threshold: float | None  # rows with at least this score are answered
    n: float  # rows answered, by weight
    errors: float  # among them
    total: int  # rows in all
    share: float  # of rows that are answered, by weight
    rows_needed: int | None  # rows in all from which on some could be answered; None where more rows will not help


def at_least(scores: Array, threshold: float | None) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
    """A mask of the scores that reach a threshold, up to rounding; none reaches None."""
    return np.zeros(len(scores), dtype=bool) if threshold is None else scores >= lower_slightly(threshold)


def lower_slightly(threshold: float) -> float:
    """The threshold that scores are compared with, so that equal scores computed elsewhere stay on its side.

    >>> lower_slightly(0.5)
    0.4999999995
    """
    return threshold * (1 - SAME)


def answered_rows(curve: Curve, most_errors: float, confidence: float) -> AnsweredRows:
    """The largest set of surest rows whose error rate is at most `most_errors` with this confidence.

    The weights of the curve count rows. Rows of equal scores are answered all or none.

    >>> curve = Curve.sort(np.linspace(0.5, 1, 200), np.ones(200))
    >>> answered_rows(curve, 0.05, 0.95).threshold  # none of 200 rows is wrong
    0.5
    >>> answered_rows(curve, 0.01, 0.95).rows_needed  # 437 rows without an error are the least
    650
    """
    places = _Places.of(curve)
    alpha = (1 - confidence) / STARTS
    accepted = _walk(places, most_errors, alpha)
    if accepted is None:
        needed = _rows_needed(places, most_errors, alpha)
        return AnsweredRows(threshold=None, n=0, errors=0, total=places.total, share=0.0, rows_needed=needed)
    return AnsweredRows(
        threshold=float(places.scores[accepted]),
        n=int(places.rows[accepted]),
        errors=int(places.errors[accepted]),
        total=places.total,
        share=float(places.rows[accepted] / places.total),
        rows_needed=places.total,
    )


@dataclass(frozen=True)
class _Places:
    """Possible thresholds from the highest score down, and the rows and errors that reach each."""

    scores: Array  # descending, distinct
    rows: Ints  # that reach the score
    errors: Ints

    @classmethod
    def of(cls, curve: Curve) -> "_Places":
        scores = curve.scores[curve.group_ends - 1]
        first = np.concatenate([[0], curve.group_ends[:-1]])[np.searchsorted(scores, lower_slightly(1.0) * scores)]
        rows = curve.total - curve.weight_sum[first]
        errors = rows - (curve.outcome_sum[-1] - curve.outcome_sum[first])
        return cls(scores[::-1], *(np.round(counts[::-1]).astype(np.int64) for counts in (rows, errors)))

    @property
    def total(self) -> int:
        return int(self.rows[-1])


def _walk(places: _Places, most_errors: float, alpha: float) -> int | None:
    """The lowest threshold (its place) that the sequence of tests accepts; None where it accepts none."""
    from scipy.special import bdtr

    best = -1
    step = max(1, round(places.total / STEPS))
    for start in _starts(places.total, most_errors, alpha):
        rows = np.minimum(np.arange(start, places.total + step, step), places.total)
        at = np.searchsorted(places.rows, rows)
        rejected = bdtr(places.errors[at], places.rows[at], most_errors) <= alpha
        walked = len(rejected) if rejected.all() else int(rejected.argmin())
        best = max(best, int(at[walked - 1]) if walked else -1)
    return best if best >= 0 else None


def _starts(total: int, most_errors: float, alpha: float) -> list[int]:
    """Numbers of rows to start from: geometric, from the fewest that can be accepted without an error to all rows."""
    least = fewest_rows(most_errors, alpha)
    return [] if total < least else [ceil(rows - 1e-9) for rows in np.geomspace(least, total, STARTS)]


def fewest_rows(most_errors: float, alpha: float) -> int:
    """The number of rows without an error that rejects an error rate of `most_errors`.

    >>> fewest_rows(0.02, 0.0125)
    217
    """
    return ceil(log(alpha) / log(1 - most_errors))


def _rows_needed(places: _Places, most_errors: float, alpha: float) -> int | None:
    """About how many rows like these would let a start be accepted: their error rates, on larger sets."""
    from scipy.special import bdtr

    rate = (places.errors + 0.5) / (places.rows + 1)  # the few surest rows have no errors by chance
    total = max(places.total, fewest_rows(most_errors, alpha))
    while total <= max(MOST_ROWS * places.total, fewest_rows(most_errors, alpha)):
        starts = np.array(_starts(total, most_errors, alpha))
        at = np.minimum(np.searchsorted(places.rows, starts * (places.total / total)), len(rate) - 1)
        if (bdtr(np.floor(rate[at] * starts), starts, most_errors) <= alpha).any():
            return two_figures(total)
        total = ceil(total * 1.02)
    if not places.errors[-1]:  # so few rows that half an error is too many: at least so many without one
        return two_figures(fewest_rows(most_errors, alpha))
    return None
