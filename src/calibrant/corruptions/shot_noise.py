"""Shot noise: light comes in single photons."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats


@dataclass(frozen=True)
class ShotNoise(Corruption):
    """Poisson noise: white is 500, 250, 100, 75 or 50 photons.

    CIFAR-10-C style. Black stays black.

    >>> grey = np.full((1, 64, 64, 1), 128, dtype=np.uint8)
    >>> noisy = ShotNoise(severity=5)(grey, np.random.default_rng(0))
    >>> round(float(noisy.std() / 255), 2)  # sqrt(0.5 / 50)
    0.1
    """

    title: ClassVar[str] = "Shot noise"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        photons = self.pick(500, 250, 100, 75, 50)
        return floats(rng.poisson(x * photons) / photons)
