"""Isotonic regression of every class against the rest (IROvA)."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import PER_CLASS, Calibrator
from calibrant.calibrators._scores import free_fit, isotonic_knots, tied_scores, tilt
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class IsotonicOvr(Calibrator):
    """One isotonic fit per class, plus 1e-9 times the probability to break ties; rows renormalised.

    Overfits classes with few rows, and gives a class without any rows next to nothing.

    >>> p = Predictions.from_probs([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]], [0, 1, 0, 1])
    >>> IsotonicOvr().fit(p)(p).probs[:, 0].round(6)  # class 0 in order of score: 0, (1, 0), 1
    array([1. , 0.5, 0.5, 0. ])
    """

    title: ClassVar[str] = "Isotonic regression, one against the rest"
    reference: ClassVar[str] = "Zadrozny, Elkan, KDD 2002"
    tasks: ClassVar[tuple[Task, ...]] = PER_CLASS
    complexity: ClassVar[int] = 3
    says_zero: ClassVar[bool] = True
    needs_every_class: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        lines = [tilt(*isotonic_knots(tied)) for tied in tied_scores(p, "ovr")]
        step = Curves([x for x, _ in lines], [y for _, y in lines], "line", "classes")
        return self.build_map(p, step, fit=free_fit(p, "ovr"))
