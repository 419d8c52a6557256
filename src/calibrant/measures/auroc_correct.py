"""AUROC of correctness: do right predictions get more confidence than wrong ones?"""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import area_under_roc
from calibrant.measures._base import Direction, RankingMeasure, Streams


@dataclass(frozen=True)
class AUROCCorrect(RankingMeasure):
    """Chance that a correct prediction has more confidence than an incorrect one, ties counting half.

    Undefined (NaN) when every prediction is right or every one is wrong. Blind to calibration. Not the ROC AUC of a
    class, which is `roc_auc`.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]], labels=[0, 1, 0])
    >>> AUROCCorrect()(p)  # both correct ones (0.9, 0.7) outrank the wrong one (0.6)
    1.0
    """

    title: ClassVar[str] = "AUROC of correctness"
    other_names: ClassVar[tuple[str, ...]] = ("auroc",)
    name_hint: ClassVar[str] = "of the confidence, for being right"
    streams: ClassVar[Streams] = "ranking"
    meaning: ClassVar[str] = (
        "Refinement: how often a right prediction has more confidence than a wrong one. Blind to calibration."
    )
    reference: ClassVar[str] = "Hendrycks, Gimpel, ICLR 2017"
    direction: ClassVar[Direction] = "up"
    needs_both: ClassVar[bool] = True

    def from_curve(self, curve: Curve) -> float:
        return area_under_roc(curve.group_blocks())

    @property
    def definition(self) -> str:
        return "area under the ROC of confidence as a score for being correct, mid-ranks for ties"
