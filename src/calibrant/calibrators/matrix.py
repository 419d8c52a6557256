"""Matrix scaling: a full linear map of the logits."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.calibrators._base import PER_CLASS, Calibrator
from calibrant.calibrators._linear import ITERATIONS, descend_linear, fit_linear
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.temperature import find_temperature


@dataclass(frozen=True)
class Matrix(Calibrator):
    """softmax(W z + b), by maximum likelihood.

    k (k + 1) numbers: overfits badly from about 100 classes on. `sms` and `ms_odir` are the regularised forms.
    Acts on the logits as they are: a constant added to a row changes what it says, so fit and apply it to logits made
    in the same way.

    >>> p = Predictions.from_logits([[0.0, 0.0]] * 8, [0, 0, 0, 1] * 2)
    >>> Matrix().fit(p)(p).probs[0].round(4).tolist()
    [0.75, 0.25]
    """

    solver: Literal["optimum", "gd1000"] = (
        "optimum"  # gd1000: 1,000 plain gradient steps of 0.001, as for Neural Clamping
    )
    iterations: int = ITERATIONS

    title: ClassVar[str] = "Matrix scaling"
    words: ClassVar[str] = "matrix scaling"
    reference: ClassVar[str] = "Guo et al., ICML 2017"
    tasks: ClassVar[tuple[Task, ...]] = PER_CLASS
    complexity: ClassVar[int] = 3
    holds_temperature: ClassVar[bool] = True
    sees_constants: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        if self.solver == "gd1000":
            linear = descend_linear(p.logits, p.labels, "matrix", steps=1000, rate=0.001, rows_weigh=p.weights)
        else:
            start = 1 / find_temperature(p).T
            linear = fit_linear(
                p.logits, p.labels, "matrix", start=start, iterations=self.iterations, rows_weigh=p.weights
            )
        return self.build_map(p, Linear(linear.weight, linear.bias), fit=linear.fit, objective=linear.objective)
