"""Average precision: how pure are the highest scores?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import average_precision
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.estimate import Draws, Estimate, Normal
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures._base import Direction
from calibrant.measures._positive import PositiveMeasure

WIDER = 1.1  # picked by trying factors on simulated sets; with it 170 of 180 intervals held the truth


@dataclass(frozen=True)
class AveragePrecision(PositiveMeasure):
    """Share of positives among the rows above a threshold, averaged over the thresholds at which positives are found.

    Its chance level is the share of positives, so do not compare it between sets with different shares.

    >>> p = Predictions.binary([0.9, 0.8, 0.7], [1, 0, 1])
    >>> round(AveragePrecision()(p), 4)  # precision 1 at the first positive, 2/3 at the second
    0.8333
    """

    title: ClassVar[str] = "Average precision"
    other_names: ClassVar[tuple[str, ...]] = ("ap", "average_precision_score", "pr_auc", "aucpr", "auprc", "aupr")
    name_hint: ClassVar[str] = "which adds up steps, not trapezoids"
    meaning: ClassVar[str] = "Share of positives among the rows of high scores; by chance it is the share of all rows."
    reference: ClassVar[str] = "Davis, Goadrich, ICML 2006"
    direction: ClassVar[Direction] = "up"

    def from_curve(self, curve: Curve) -> float:
        blocks = [(positives[::-1], negatives[::-1]) for positives, negatives in curve.group_blocks()][::-1]
        return average_precision(blocks) if any(negatives.any() for _, negatives in blocks) else float("nan")

    def estimate(self, p: Predictions, rows: Sampling) -> Estimate:
        """With normal noise of the logit, as wide as the resamples show: few positives make their values skew.

        The basic bootstrap held the truth in 87 to 94 % of trials with 50 to 200 positives, this one in 92 to 98 %.
        """
        from scipy.special import logit

        plain = super().estimate(p, rows)
        if rows.subtracted or rows.in_parts or not isinstance(plain.noise, Draws):
            return plain
        inside = 1 / (2 * p.n)  # the logit of 0 or 1 is infinite
        resampled = plain.noise.lower[np.isfinite(plain.noise.lower)] + plain.value
        centre, logits = (logit(np.clip(v, inside, 1 - inside)) for v in (plain.value, resampled))
        noise = Normal(
            error=WIDER * float(np.std(logits, ddof=1)),
            freedom=max(p.mean(p.outcome) * p.n - 1, 1),
            link="logit",
            centre=float(centre),
            method=plain.noise.method,
        )
        return self.with_noise(plain.value, noise)

    @property
    def definition(self) -> str:
        return "average precision of P(positive) for being positive, tie groups as a whole, no interpolation"

    def definition_for(self, p: Predictions) -> str:
        return self.definition
