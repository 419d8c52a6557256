"""Bayesian binning into quantiles."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.calibrators._scores import STEP_SCOPE, OfScores, TiedScores, free_fit, tied_scores
from calibrant.core.arrays import Array, Ints
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import SCORE_FLOOR, Curves
from calibrant.core.predictions import Predictions

PRIOR = 2.0  # rows that the prior is worth, shared by the bins of one binning
NEGLIGIBLE = 1e-12  # share of the best score below which a binning is left out


@dataclass(frozen=True)
class BBQ(OfScores):
    """The mean of many equal-mass histograms, each weighted by how well it explains the outcomes.

    `score` is the Bayesian marginal likelihood, or "bic": exp(-BIC / 2). The result is a stair with many small steps,
    not monotone. Below 10 rows there is a single bin, and the result is close to the share of positive outcomes.

    >>> p = Predictions.from_probs([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]], [1, 0, 0, 0])
    >>> BBQ().fit(p)(p).confidence  # one bin, prior of 2 rows with middle 1/2: (3 + 1) / (4 + 2)
    array([0.66666667, 0.66666667, 0.66666667, 0.66666667])
    """

    score: Literal["bayes", "bic"] = "bayes"

    title: ClassVar[str] = "Bayesian binning into quantiles"
    reference: ClassVar[str] = "Naeini, Cooper, Hauskrecht, AAAI 2015"
    says_zero: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        counts = bin_counts(round(p.n_effective))
        stairs = [self._stair(tied, [tied.begins(count) for count in counts]) for tied in tied_scores(p, self.scope)]
        step = Curves([x for x, _ in stairs], [y for _, y in stairs], "stair", STEP_SCOPE[self.scope])
        return self.build_map(p, step, fit=free_fit(p, self.scope), binnings=len(counts))

    def _stair(self, tied: TiedScores, begins: list[Array]) -> tuple[Array, Array]:
        """The bins of all binnings in one long row, each binning ending with the edge 1."""
        owner = np.repeat(np.arange(len(begins)), [len(b) for b in begins])
        edges = np.append(tied.halfway(np.concatenate(begins)), np.ones(len(begins)))
        owner = np.append(owner, np.arange(len(begins)))
        order = np.lexsort((edges, owner))
        edges, owner = np.minimum(edges[order], 1.0), owner[order]  # (all bins,) upper edge and binning of each
        new = np.append(True, (np.diff(owner) != 0) | (np.diff(edges) != 0))
        edges, owner = edges[new], owner[new]
        first = np.append(True, np.diff(owner) != 0)
        below = np.where(first, 0.0, np.append(0.0, edges[:-1]))

        at = np.searchsorted(tied.x, edges, side="right")
        size, positives = (_between(values, at, first) for values in (tied.size, tied.positives))
        size = np.maximum(size, 0.0)  # shares of weights round
        positives = np.clip(positives, 0.0, size)
        prior = PRIOR / np.bincount(owner)[owner]
        middle = np.clip((edges + below) / 2, SCORE_FLOOR, 1 - SCORE_FLOOR)
        value = (positives + prior * middle) / (size + prior)

        evidence = _bayes(size, positives, prior, middle) if self.score == "bayes" else _bic(size, positives, tied.n)
        total = np.bincount(owner, evidence)
        weight = np.exp(total - total.max())
        weight[weight < NEGLIGIBLE] = 0.0
        weight /= weight.sum()

        used = weight[owner] > 0
        share, first, below = weight[owner][used], first[used], below[used]
        value = value[used]
        jump = share * np.where(first, value, value - np.append(0.0, value[:-1]))
        x, place = np.unique(np.where(first, -1.0, below), return_inverse=True)  # -1: where every stair starts
        return x[1:], np.clip(np.cumsum(np.bincount(place, jump)), 0.0, 1.0)


def bin_counts(n: int) -> range:
    """The numbers of bins that are tried: n^(1/3) / 10 to 10 n^(1/3), and 5 rows a bin at least."""
    root = float(np.cbrt(n))
    low = max(1, int(root / 10))
    return range(low, max(low, min(int(np.ceil(10 * root)), n // 5)) + 1)


def _between(values: Array, at: Ints, first: Array) -> Array:
    """Sums over each bin from the sums up to its upper edge."""
    below = np.append(0.0, np.cumsum(values))[at]
    return np.asarray(below - np.where(first, 0.0, np.append(0.0, below[:-1])))


def _bayes(size: Array, positives: Array, prior: Array, middle: Array) -> Array:
    """Log of the marginal likelihood of each bin under a Beta prior around its middle."""
    from scipy.special import gammaln

    up, down = prior * middle, prior * (1 - middle)
    rows = gammaln(prior) - gammaln(size + prior)
    return np.asarray(rows + gammaln(positives + up) - gammaln(up) + gammaln(size - positives + down) - gammaln(down))


def _bic(size: Array, positives: Array, n: float) -> Array:
    """Each bin's part of -BIC / 2: its log-likelihood at the share of positive outcomes, less half a ln n."""
    from scipy.special import xlogy

    rows = np.maximum(size, 1.0)
    return np.asarray(
        xlogy(positives, positives / rows) + xlogy(size - positives, (size - positives) / rows) - np.log(n) / 2
    )
