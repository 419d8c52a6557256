"""Matrix scaling with off-diagonal and intercept regularisation (MS-ODIR)."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.calibrators._base import PER_CLASS, Calibrator
from calibrant.calibrators._odir import Select, fit_odir
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task


@dataclass(frozen=True)
class MSODIR(Calibrator):
    """softmax(W z + b) with small off-diagonal weights and biases; seven strengths, chosen by cross-validation.

    36 fits of k (k + 1) numbers: slow for many classes. `select=cal_ece` picks by the ECE on the fitting rows, as the
    paper says literally; that favours weak regularisation. Acts on the logits as they are: a constant
    added to a row changes what it says. `dirichlet` acts on log-probabilities, where nothing can be added.

    >>> p = Predictions.from_logits([[2.0, 0.0], [0.0, 2.0]] * 20, [0, 1, 0, 1, 0, 0, 1, 1] * 5)
    >>> MSODIR().fit(p).fit.converged
    True
    """

    select: Select = "cross_validation"
    grid: bool = False  # all 49 pairs of strengths instead of 7 equal ones

    title: ClassVar[str] = "Matrix scaling with ODIR"
    reference: ClassVar[str] = "Kull et al., NeurIPS 2019"
    tasks: ClassVar[tuple[Task, ...]] = PER_CLASS
    complexity: ClassVar[int] = 3
    holds_temperature: ClassVar[bool] = True
    sees_constants: ClassVar[bool] = True
    picks: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        linear, chosen = fit_odir(p, self.select, self.grid)
        return self.build_map(p, Linear(linear.weight, linear.bias), fit=linear.fit, **chosen)
