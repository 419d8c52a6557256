"""Rows answered with a guarantee where rows come in clusters, or have weights that are shares.

Errors are not binomial there. Of the answered rows, cluster c has the weight m_c and errors of the weight k_c, and
z_c = k_c - r m_c is at most (1 - r) m_c. If the error rate is above r, the z_c of a draw of outcomes have a positive
sum on average, so for any bet b the product of all 1 - b z_c is at most one on average (clusters are independent, and
the mean of logarithms is below the logarithm of the mean). That product is evidence: it exceeds 1 / alpha with a chance
of at most alpha (Ville; Waudby-Smith, Ramdas, JRSS B 2024). The mean over several bets has the same property. Nothing
is assumed about how rows of a cluster depend on each other, and clusters that hardly vary count for more than one row.
"""

from math import ceil, log

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.cached_property import cached_property
from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import is_whole
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.error_guarantee import (
    MOST_ROWS,
    STARTS,
    STEPS,
    AnsweredRows,
    answered_rows,
    lower_slightly,
)
from calibrant.core.text.number_format import two_figures

BETS = np.array([0.95, 0.5, 0.25, 0.12, 0.06, 0.03])  # in units of the largest that cannot lose all


def rows_to_answer(p: Predictions, curve: Curve, most_errors: float, confidence: float) -> AnsweredRows:
    """The surest rows of a curve of `p` whose error rate is at most `most_errors` with this confidence."""
    if counts_rows(p):
        return answered_rows(curve, most_errors, confidence)
    cluster = None if p.clusters is None else np.unique(p.clusters[curve.order], return_inverse=True)[1]
    return answered_clusters(curve, cluster, most_errors, confidence)


def counts_rows(p: Predictions) -> bool:
    """Whether errors among the rows are binomial: rows are independent, and weights count them."""
    return p.clusters is None and (p.weights is None or is_whole(p.weights))


def answered_clusters(curve: Curve, cluster: Ints | None, most_errors: float, confidence: float) -> AnsweredRows:
    """The surest rows with a bound on their error rate, for rows in clusters (0, 1, ..., in the order of the curve).

    >>> curve = Curve.sort(np.linspace(0.5, 1, 600), np.ones(600))
    >>> answered_clusters(curve, np.arange(600) // 3, 0.05, 0.95).n  # 200 clusters without an error
    600.0
    >>> answered_clusters(curve, np.arange(600) // 6, 0.05, 0.95).threshold  # 100 clusters are too few
    """
    evidence = _Evidence(curve, cluster, most_errors)
    alpha = (1 - confidence) / STARTS
    starts = evidence.starts(alpha)
    best = curve.n
    step = max(1, round(curve.n / STEPS))
    for start in starts:
        for row in (start, *range((start - 1) // step * step, -1, -step)):  # walks share their later places
            if evidence.total(row) < -log(alpha):
                break
            best = min(best, evidence.first(row))
    weight, errors = curve.weight_sum[-1] - curve.weight_sum[best], evidence.errors[best:].sum()
    possible = best < curve.n
    return AnsweredRows(
        threshold=float(curve.scores[evidence.last_tie(best)]) if possible else None,
        n=float(weight),
        errors=float(errors),
        total=curve.n,
        share=float(weight / curve.total),
        rows_needed=curve.n if possible else evidence.rows_needed(starts, alpha),
    )


class _Evidence:
    """Evidence against an error rate above the bound, of the rows of a curve from any row on."""

    def __init__(self, curve: Curve, cluster: Ints | None, most_errors: float) -> None:
        self.curve, self.cluster, self.bound = curve, cluster, most_errors
        self.errors: Array = curve.weights * (1 - curve.outcomes)
        self._known: dict[int, Array] = {}

    @cached_property
    def _of_rows(self) -> Array:
        """Logarithm of the evidence of each bet of rows that stand alone, from each row on, (n, bets)."""
        unit = (self.errors - self.bound * self.curve.weights) / (self.curve.weights.max() * (1 - self.bound))
        return np.stack([np.cumsum(np.log1p(-bet * unit)[::-1])[::-1] for bet in BETS], axis=1)

    def first(self, row: int) -> int:
        """The first row whose score equals that of this row, up to rounding: equal rows are answered all or none."""
        return int(np.searchsorted(self.curve.scores, lower_slightly(float(self.curve.scores[row]))))

    def last_tie(self, row: int) -> int:
        """The highest score that the row's own is a rounded form of."""
        return int(np.searchsorted(self.curve.scores, self.curve.scores[row] / lower_slightly(1.0), side="right")) - 1

    def of_bets(self, row: int) -> Array:
        """Logarithm of the evidence of each bet."""
        start = self.first(row)
        if self.cluster is None:
            return np.asarray(self._of_rows[start])
        if start not in self._known:
            cluster, weight = self.cluster[start:], self.curve.weights[start:]
            size = np.bincount(cluster, weight)
            excess = (np.bincount(cluster, self.errors[start:]) - self.bound * size)[size > 0]
            unit = excess / (size.max() * (1 - self.bound))
            self._known[start] = np.array([np.log1p(-bet * unit).sum() for bet in BETS])
        return self._known[start]

    def total(self, row: int) -> float:
        return _log_mean(self.of_bets(row))

    def starts(self, alpha: float) -> list[int]:
        """Rows to walk down from: geometric, from the fewest clusters that can do without an error to all rows."""
        fewest = ceil((log(alpha) - log(len(BETS))) / log(1 - self.bound))
        least = min(fewest, self.curve.n)
        if self.cluster is not None:
            appear = np.unique(self.cluster[::-1], return_index=True)[1]  # rows surer than the first of each cluster
            least = int(np.partition(appear, fewest - 1)[fewest - 1]) + 1 if fewest <= len(appear) else self.curve.n
        return [self.curve.n - ceil(rows - 1e-9) for rows in np.geomspace(least, self.curve.n, STARTS)]

    def rows_needed(self, starts: list[int], alpha: float) -> int | None:
        """About how many rows like these would do: evidence grows with the number of clusters."""
        for times in 1.02 ** np.arange(ceil(log(MOST_ROWS) / log(1.02))):
            if any(_log_mean(times * self.of_bets(row)) >= -log(alpha) for row in starts):
                return two_figures(ceil(times * self.curve.n))
        return None


def _log_mean(logs: Array) -> float:
    """Logarithm of the mean of exp(logs)."""
    top = float(logs.max())
    return top + log(float(np.exp(logs - top).mean()))
