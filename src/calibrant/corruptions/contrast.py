"""Low contrast."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats


@dataclass(frozen=True)
class Contrast(Corruption):
    """Differences from the mean of each channel of an image, times 0.75 down to 0.15.

    CIFAR-10-C style. Networks that normalise each image by itself do not see it.

    >>> image = np.array([0, 200], dtype=np.uint8).reshape(1, 1, 2, 1)
    >>> Contrast(severity=2)(image, np.random.default_rng(0)).reshape(-1).tolist()
    [50, 150]
    """

    title: ClassVar[str] = "Contrast"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        share = self.pick(0.75, 0.5, 0.4, 0.3, 0.15)
        middle = x.mean(axis=(1, 2), keepdims=True)
        return floats((x - middle) * share + middle)
