"""Use a plain function as a measure, without writing a class."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures import Direction, Measure


@dataclass(frozen=True)
class FunctionMeasure(Measure):
    """A function of predictions that returns a number, with a bootstrap interval.

    Nothing is known about it: not which way is better, nor whether noise biases it. A class in a file of its own
    (`calibrant.measures`, or `./mine.py`) can say so.

    >>> def sure(p):
    ...     return (p.confidence > 0.8).mean()
    >>> FunctionMeasure(sure)(Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1]))
    0.5
    """

    function: Callable[[Predictions], float]

    title: ClassVar[str] = "A function"
    reference: ClassVar[str] = "-"
    direction: ClassVar[Direction] = "none"
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, p: Predictions) -> float:
        value = self.function(p)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(
                self.name,
                expected="a function of predictions that returns one number",
                got=f"{type(value).__name__}",
                fix="return a float, for instance float((p.confidence > 0.9).mean())",
            ) from None

    @property
    def definition(self) -> str:
        summary = (self.function.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        return summary or f"the function {self.name}"
