"""Gaussian blur."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, length
from calibrant.corruptions._pixels import gaussian


@dataclass(frozen=True)
class GaussianBlur(Corruption):
    """Every pixel spread over its neighbours, by 0.4 to 1 pixels of a small image.

    CIFAR-10-C style, one of its four extra corruptions. It draws nothing: the random generator is not used.

    >>> dot = np.zeros((1, 9, 9, 1), dtype=np.uint8)
    >>> dot[0, 4, 4] = 255
    >>> int(GaussianBlur(severity=5)(dot, np.random.default_rng(0))[0, 4, 4, 0])  # 255 / (2 pi), about
    41
    """

    title: ClassVar[str] = "Gaussian blur"
    usual: ClassVar[bool] = False

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        return gaussian(x, self.pick(0.4, 0.6, 0.7, 0.8, 1.0) * length(x))
