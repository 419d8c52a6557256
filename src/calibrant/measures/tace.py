"""Thresholded adaptive calibration error."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.curves.class_curves import ClassCurves
from calibrant.core.curves.weighted import WeightedCurves
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures.ace_nixon import ACENixon


@dataclass(frozen=True)
class TACE(ACENixon):
    """As `ace_nixon`, but only probabilities above a threshold are looked at.

    The value depends strongly on the threshold; classes without a probability above it count as 0.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
    >>> round(TACE(bins=1, threshold=0.5)(p), 3)  # class 0: |0.75 - 0.5|; class 1 has nothing above 0.5
    0.125
    """

    threshold: float = 0.01

    title: ClassVar[str] = "Thresholded adaptive calibration error"
    reference: ClassVar[str] = "Nixon et al., CVPR workshops 2019"
    covers: ClassVar[str] = "wider than it need be: a nominal 95 % held the truth in 93 to 100 % of trials"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.threshold < 1:
            raise InputError("threshold", expected="a share in [0, 1)", got=f"{self.threshold:g}", fix="use 0.01")

    @property
    def above(self) -> float:
        return self.threshold

    def curves(self, p: Predictions) -> Iterator[ClassCurves | WeightedCurves]:
        for curves in p.class_curves():
            yield from curves.above(self.threshold)

    @property
    def definition(self) -> str:
        gap = f"class-wise gap of probabilities above {self.threshold:g}"
        return f"{gap}, {self.bins_in_words} per class, plain mean over classes and bins"
