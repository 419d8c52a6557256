"""Impulse noise: salt and pepper."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats


@dataclass(frozen=True)
class ImpulseNoise(Corruption):
    """Between 1 and 7 % of all values become 0 or 1, half of them each.

    CIFAR-10-C style. Channels are hit one by one, so colour images get coloured dots.

    >>> grey = np.full((1, 100, 100, 1), 128, dtype=np.uint8)
    >>> round(float((ImpulseNoise(severity=5)(grey, np.random.default_rng(0)) != 128).mean()), 2)
    0.07
    """

    title: ClassVar[str] = "Impulse noise"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        share = self.pick(0.01, 0.02, 0.03, 0.05, 0.07)
        chance = rng.random(x.shape, dtype=np.float32)
        return floats(np.where(chance < share, chance < share / 2, x))
