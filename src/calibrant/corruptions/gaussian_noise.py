"""Gaussian noise, as of a sensor in the dark."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats


@dataclass(frozen=True)
class GaussianNoise(Corruption):
    """Normal noise on every value, of a spread between 0.04 and 0.10.

    CIFAR-10-C style. Values that leave 0..1 are cut, so dark and bright areas change less than the spread says.

    >>> grey = np.full((1, 32, 32, 1), 128, dtype=np.uint8)
    >>> round(float(GaussianNoise(severity=5)(grey, np.random.default_rng(0)).std() / 255), 2)
    0.1
    """

    title: ClassVar[str] = "Gaussian noise"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        spread = self.pick(0.04, 0.06, 0.08, 0.09, 0.10)
        return x + floats(spread) * rng.standard_normal(x.shape, dtype=np.float32)
