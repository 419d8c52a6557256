"""Vector scaling: a weight and a bias for every class."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.calibrators._base import PER_CLASS, Calibrator
from calibrant.calibrators._linear import descend_linear, fit_linear
from calibrant.core.maps.map import Map
from calibrant.core.maps.steps import Linear
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Task
from calibrant.core.statistics.temperature import find_temperature


@dataclass(frozen=True)
class Vector(Calibrator):
    """softmax(w * z + b), by maximum likelihood.

    2 k numbers: overfits when classes have few rows, and may change predictions. `svs` is the regularised form.
    Acts on the logits as they are: a constant added to a row changes what it says, so fit and apply it to logits made
    in the same way.

    >>> p = Predictions.from_logits([[0.0, 0.0]] * 8, [0, 0, 0, 1] * 2)  # class 0 three times in four
    >>> Vector().fit(p)(p).probs[0].round(4).tolist()
    [0.75, 0.25]
    """

    solver: Literal["optimum", "gd1000"] = (
        "optimum"  # gd1000: 1,000 plain gradient steps of 0.001, as for Neural Clamping
    )

    title: ClassVar[str] = "Vector scaling"
    words: ClassVar[str] = "vector scaling"
    reference: ClassVar[str] = "Guo et al., ICML 2017"
    tasks: ClassVar[tuple[Task, ...]] = PER_CLASS
    complexity: ClassVar[int] = 2
    holds_temperature: ClassVar[bool] = True
    sees_constants: ClassVar[bool] = True

    def fit(self, p: Predictions) -> Map:
        if self.solver == "gd1000":
            linear = descend_linear(p.logits, p.labels, "vector", steps=1000, rate=0.001, rows_weigh=p.weights)
        else:
            start = 1 / find_temperature(p).T
            linear = fit_linear(p.logits, p.labels, "vector", start=start, rows_weigh=p.weights)
        return self.build_map(p, Linear(linear.weight, linear.bias), fit=linear.fit, objective=linear.objective)
