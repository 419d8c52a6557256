"""Motion blur: the camera moved."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, length
from calibrant.corruptions._pixels import streak


@dataclass(frozen=True)
class MotionBlur(Corruption):
    """Every image smeared in one direction, up to 45 degrees from the horizontal.

    CIFAR-10-C style. Places are rounded to whole pixels; edges are continued.

    >>> flat = np.full((1, 9, 9, 3), 77, dtype=np.uint8)
    >>> bool((MotionBlur()(flat, np.random.default_rng(0)) == 77).all())
    True
    """

    title: ClassVar[str] = "Motion blur"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        radius, sigma = self.pick((6, 1.0), (6, 1.5), (6, 2.0), (8, 2.0), (9, 2.5))
        scale = length(x)
        return streak(x, radius * scale, sigma * scale, rng.uniform(-45, 45, len(x)))
