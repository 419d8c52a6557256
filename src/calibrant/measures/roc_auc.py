"""ROC AUC: do positive rows get higher scores than negative ones?"""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.ranking import area_under_roc
from calibrant.core.predictions import Predictions
from calibrant.measures._base import Direction, Streams
from calibrant.measures._positive import PositiveMeasure


@dataclass(frozen=True)
class ROCAUC(PositiveMeasure):
    """Chance that a positive row has a higher score than a negative one, ties counting half.

    Undefined (NaN) when all rows are of one kind. Blind to calibration, and to how rare positives are: with few of
    them look at `average_precision` too.

    >>> ROCAUC()(Predictions.binary([0.9, 0.6, 0.7, 0.2], [1, 0, 0, 1]))  # of four pairs two are in order
    0.5
    """

    title: ClassVar[str] = "ROC AUC"
    other_names: ClassVar[tuple[str, ...]] = (
        "auc",
        "auroc",
        "roc_auc_score",
        "area_under_roc",
        "c_statistic",
        "c_index",
        "gini",
    )
    name_hint: ClassVar[str] = "of P(positive), for two classes; Gini is twice it minus 1"
    streams: ClassVar[Streams] = "ranking"
    meaning: ClassVar[str] = (
        "Refinement: how often a positive row has a higher score than a negative one. Blind to calibration."
    )
    reference: ClassVar[str] = "Hanley, McNeil, Radiology 1982"
    direction: ClassVar[Direction] = "up"

    def from_curve(self, curve: Curve) -> float:
        return area_under_roc(curve.group_blocks())

    @property
    def definition(self) -> str:
        return "area under the ROC of P(positive) as a score for being positive, mid-ranks for ties"

    def definition_for(self, p: Predictions) -> str:
        return self.definition
