"""Isotonic regression of the top label."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import EVERY_TASK, Calibrator
from calibrant.calibrators._scores import free_fit, isotonic_knots, ordered_scores
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class Isotonic(Calibrator):
    """The non-decreasing function of confidence nearest to the outcomes; linear between knots, constant outside.

    Says exactly 0 or 1 at the ends, where one surprise costs an unbounded log loss.

    >>> p = Predictions.from_probs([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]], [1, 0, 1, 0])
    >>> Isotonic().fit(p)(p).confidence  # outcomes: 0, (1, 0), 1; the middle two share 1 / 2
    array([0. , 0.5, 0.5, 1. ])
    """

    title: ClassVar[str] = "Isotonic regression"
    words: ClassVar[str] = "isotonic regression"
    reference: ClassVar[str] = "Zadrozny, Elkan, KDD 2002"
    tasks: ClassVar[tuple[Task, ...]] = EVERY_TASK
    keeps_argmax: ClassVar[bool] = True
    of_score: ClassVar[bool] = True
    complexity: ClassVar[int] = 3
    says_zero: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        (tied,), on = ordered_scores(p, "top")
        x, y = isotonic_knots(tied)
        return self.build_map(p, Curves([x], [y], "line", "top", on), fit=free_fit(p, "top"))
