"""False positive rate at 95 % true positive rate."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.errors import InputError
from calibrant.measures._base import RankingMeasure


@dataclass(frozen=True)
class FPR95(RankingMeasure):
    """Share of wrong predictions let through by the strictest threshold that keeps 95 % of the right ones.

    Reads one point of the ROC only, so it is noisier than the AUROC. NaN when all are right or all wrong.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], labels=[0, 1, 0])
    >>> FPR95()(p)  # the threshold 0.7 keeps both right predictions and no wrong one
    0.0
    """

    tpr: float = 0.95

    title: ClassVar[str] = "FPR at 95 % TPR"
    reference: ClassVar[str] = "Liang, Li, Srikant, ICLR 2018"
    covers: ClassVar[str] = "a nominal 95 % held the truth in 86 to 94 % of trials"
    needs_both: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.tpr <= 1:
            raise InputError("tpr", expected="a share in (0, 1]", got=f"{self.tpr:g}", fix="use for instance 0.95")

    def from_curve(self, curve: Curve) -> float:
        positives, negatives = curve.groups
        if positives.sum() == 0 or negatives.sum() == 0:
            return float("nan")
        recalled = np.cumsum(positives[::-1])
        at = int(np.argmax(recalled >= self.tpr * recalled[-1] - 1e-9))  # 0.95 * 20 must count as 19
        return float(np.cumsum(negatives[::-1])[at] / negatives.sum())

    @property
    def definition(self) -> str:
        return f"share of incorrect at or above the largest threshold with TPR >= {self.tpr:g}, correct as positive"
