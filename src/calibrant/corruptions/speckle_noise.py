"""Speckle noise, as of radar: the brighter, the noisier."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats


@dataclass(frozen=True)
class SpeckleNoise(Corruption):
    """Every value times a normal number around 1, of a spread between 0.06 and 0.2.

    CIFAR-10-C style, one of its four extra corruptions. Black stays black.

    >>> black = np.zeros((1, 8, 8, 1), dtype=np.uint8)
    >>> int(SpeckleNoise()(black, np.random.default_rng(0)).max())
    0
    """

    title: ClassVar[str] = "Speckle noise"
    usual: ClassVar[bool] = False

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        spread = self.pick(0.06, 0.10, 0.12, 0.16, 0.20)
        return x * (1 + floats(spread) * rng.standard_normal(x.shape, dtype=np.float32))
