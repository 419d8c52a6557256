"""Fog."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats
from calibrant.corruptions._pixels import plasma


@dataclass(frozen=True)
class Fog(Corruption):
    """White clouds added, and everything darkened so that the brightest pixel stays as bright as it was.

    CIFAR-10-C style. The clouds are sums of noise on finer and finer grids, for images of any size, instead of the
    published diamond-square ones.

    >>> black = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    >>> int(Fog()(black, np.random.default_rng(0)).max())  # without any light there is no fog to be seen
    0
    """

    title: ClassVar[str] = "Fog"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        thickness, decay = self.pick((0.2, 3.0), (0.5, 3.0), (0.75, 2.5), (1.0, 2.0), (1.5, 1.75))
        brightest = x.max(axis=(1, 2, 3), keepdims=True)
        clouds = plasma(x.shape[:3], decay, rng)[..., None]
        return floats((x + thickness * clouds) * brightest / (brightest + thickness))
