"""Spatter: drops of water or mud on the lens."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats, length
from calibrant.corruptions._pixels import gaussian, grey

WATER, MUD = (175 / 255, 238 / 255, 238 / 255), (63 / 255, 42 / 255, 20 / 255)


@dataclass(frozen=True)
class Spatter(Corruption):
    """Drops of pale water on a part of the image (severity 1 to 3), or of brown mud (4 and 5).

    CIFAR-10-C style, one of its four extra corruptions. The drops are simpler than the published ones: places where
    smoothed noise is high, without highlights at their edges.

    >>> black = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    >>> bool(Spatter()(black, np.random.default_rng(0)).max() > 50)
    True
    """

    title: ClassVar[str] = "Spatter"
    usual: ClassVar[bool] = False

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        covered, sigma, strength, mud = self.pick(
            (0.05, 0.7, 0.5, False),
            (0.10, 0.8, 0.5, False),
            (0.15, 1.0, 0.5, False),
            (0.30, 0.8, 0.9, True),
            (0.40, 0.8, 0.9, True),
        )
        scale = length(x)
        noise = gaussian(floats(rng.standard_normal(x.shape[:3])), sigma * scale)
        least = np.quantile(noise, 1 - covered, axis=(1, 2), keepdims=True)
        drops = strength * gaussian(floats(noise > least), 0.4 * scale)[..., None]
        colour = floats(MUD if mud else WATER).reshape(1, 1, 1, 3)
        colour = colour if x.shape[3] == 3 else grey(colour)
        return floats(x * (1 - drops) + colour * drops) if mud else floats(x + colour * drops)
