"""Isotonic regression of all classes together (IRM)."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import PER_CLASS, Calibrator
from calibrant.calibrators._scores import free_fit, isotonic_knots, tied_scores_of_classes, tilt
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Curves
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class IRM(Calibrator):
    """One isotonic fit on all n * k pairs of probability and presence, plus 1e-9 times the probability.

    One increasing curve for every class: the order inside a row stays, and errors of single classes stay too. Where
    1e-9 of two probabilities rounds to the same, the row keeps its prediction by name.

    >>> p = Predictions.from_probs([[0.8, 0.2], [0.7, 0.3], [0.6, 0.4]], [0, 1, 0])
    >>> IRM().fit(p)(p).confidence.round(6)  # in order 0 1 0 1 0 1: 0, 1/2, 1/2, 1
    array([1. , 0.5, 0.5])
    """

    title: ClassVar[str] = "Isotonic regression, shared by all classes"
    reference: ClassVar[str] = "Zhang, Kailkhura, Han, ICML 2020"
    tasks: ClassVar[tuple[Task, ...]] = PER_CLASS
    keeps_argmax: ClassVar[bool] = True
    complexity: ClassVar[int] = 3
    says_zero: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        x, y = tilt(*isotonic_knots(tied_scores_of_classes(p)))
        return self.build_map(p, Curves([x], [y], "line", "shared"), fit=free_fit(p, "shared"))
