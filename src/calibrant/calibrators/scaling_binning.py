"""Scaling-binning: Platt scaling, then the mean of its values in bins."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.calibrators._scores import STEP_SCOPE, OfScores, TiedScores, check_bins, middles, tied_scores
from calibrant.calibrators.platt import logit
from calibrant.core.arrays import Array
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import SCORE_FLOOR, Curves
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.logistic import Logistic, platt_of, report


@dataclass(frozen=True)
class ScalingBinning(OfScores):
    """Platt scaling of the logit, cut into `bins` bins of equal mass; each bin says its mean scaled value.

    Its calibration error can be measured without bias, but it inherits Platt's shape, and rows become ties.

    >>> p = Predictions.from_probs([[0.8, 0.2]] * 4 + [[0.5, 0.5]] * 2, [0, 0, 0, 1, 0, 1])
    >>> ScalingBinning(bins=1).fit(p)(p).confidence[0].round(6)  # Platt says 3/4 four times and 1/2 twice
    np.float64(0.666667)
    """

    bins: int = 15

    title: ClassVar[str] = "Scaling-binning"
    reference: ClassVar[str] = "Kumar, Liang, Ma, NeurIPS 2019"
    says_zero: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bins(self.bins)

    def fit(self, p: Predictions) -> Map:
        fits, x, y = [], [], []
        for tied in tied_scores(p, self.scope):
            fitted = platt_of(logit(tied.x), tied.rate, tied.size)
            knots, values = _stair(tied, fitted, self.bins)
            fits.append(fitted)
            x.append(knots)
            y.append(values)
        return self.build_map(p, Curves(x, y, "stair", STEP_SCOPE[self.scope]), fit=report(fits))


def _stair(tied: TiedScores, fitted: Logistic, bins: int) -> tuple[Array, Array]:
    """Bins of scaled values, right-closed with edges halfway, as bins of scores; a falling Platt turns them round."""
    from scipy.special import expit
    from scipy.special import logit as inverse

    a, b = float(fitted.slopes[0]), fitted.offset
    turn = slice(None, None, -1 if a < 0 else 1)
    s, size = np.clip(tied.x, SCORE_FLOOR, 1 - SCORE_FLOOR)[turn], tied.size[turn]
    scaled = np.maximum.accumulate(expit(a * logit(s) + b))  # ascending, whatever rounding does
    ascending = TiedScores(scaled, size, size)
    edges = np.unique(ascending.halfway(ascending.begins(bins)))
    edges = edges[edges < scaled[-1]]

    bin_of = np.searchsorted(edges, scaled, side="left")
    total, rows = (np.bincount(bin_of, v, minlength=len(edges) + 1) for v in (scaled * size, size))
    means = np.divide(total, rows, out=middles(edges), where=rows > 0)
    inside = np.searchsorted(scaled, edges, side="right")  # rows up to here are in the lower bin
    last, following = s[inside - 1], s[inside]
    with np.errstate(divide="ignore"):
        cut = expit((inverse(edges) - b) / a) if len(edges) else edges
    if a < 0:  # scores from the cut up are in the lower bin
        return np.nextafter(np.clip(cut, np.nextafter(following, 1.0), last), 0.0)[::-1], means[::-1]
    return np.clip(cut, last, np.nextafter(following, 0.0)), means
