"""What measures of the positive class share: they read P(positive) of binary predictions, or of two classes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.arrays import Array, Ints
from calibrant.core.catalogue import spec_of
from calibrant.core.curve import Curve
from calibrant.core.extras import Shape
from calibrant.core.positive import positive_curve
from calibrant.core.predictions import Predictions
from calibrant.measures._base import Measure


@dataclass(frozen=True)
class PositiveMeasure(Measure):
    """A number read off the sorted curve of P(positive) against being positive; of two classes, class 1 is positive."""

    shapes: ClassVar[tuple[Shape, ...]] = ("binary", "classes")
    needs_both: ClassVar[bool] = True

    def on(self, curve: Curve) -> float:
        raise TypeError(f"{type(self).__name__} does not say how to read the curve: define on")

    def check_shape(self, p: Predictions) -> None:
        self.curve(p)

    def curve(self, p: Predictions) -> Curve:
        return positive_curve(p, spec_of(self), instead="ask for auroc_correct")

    def __call__(self, p: Predictions) -> float:
        return self.on(self.curve(p))

    def resampled(self, p: Predictions, counts: Ints) -> Array:
        curve = self.curve(p)
        return np.array([self.on(curve.repeat(c)) for c in counts])

    def simulated(self, p: Predictions, rng: np.random.Generator) -> float:
        curve = self.curve(p)
        return self.on(curve.with_hits((rng.random(curve.n) < curve.scores).astype(np.float64)))
