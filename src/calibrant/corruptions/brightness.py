"""Brightness: too much light."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats


@dataclass(frozen=True)
class Brightness(Corruption):
    """The brightest channel of every pixel raised by 0.05 to 0.3, hue and saturation kept.

    CIFAR-10-C style. It draws nothing: the random generator is not used.

    >>> grey = np.full((1, 2, 2, 1), 51, dtype=np.uint8)
    >>> int(Brightness(severity=4)(grey, np.random.default_rng(0))[0, 0, 0, 0])  # 0.2 + 0.2
    102
    """

    title: ClassVar[str] = "Brightness"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        more = self.pick(0.05, 0.10, 0.15, 0.20, 0.30)
        value = x.max(axis=3, keepdims=True)
        raised = np.minimum(value + floats(more), 1)
        return floats(np.where(value > 0, x * (raised / np.maximum(value, np.float32(1e-6))), raised))
