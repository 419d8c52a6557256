"""Saturation: colours too pale or too strong."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats


@dataclass(frozen=True)
class Saturate(Corruption):
    """The saturation of every pixel times 0.3 or 0.1 (severity 1 and 2), or 1.5, 2 or 2.5 (3 to 5).

    CIFAR-10-C style, one of its four extra corruptions; its severities are not in order of damage. Grey pixels, and so
    grey images, stay as they are, where the published program turns grey pixels reddish at severity 4 and 5.

    >>> image = np.array([200, 100, 100], dtype=np.uint8).reshape(1, 1, 1, 3)
    >>> Saturate(severity=3)(image, np.random.default_rng(0)).reshape(-1).tolist()  # 0.5 becomes 0.75
    [200, 50, 50]
    """

    title: ClassVar[str] = "Saturate"
    usual: ClassVar[bool] = False

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        times, plus = self.pick((0.3, 0.0), (0.1, 0.0), (1.5, 0.0), (2.0, 0.1), (2.5, 0.2))
        value = x.max(axis=3, keepdims=True)
        saturation = 1 - x.min(axis=3, keepdims=True) / np.maximum(value, np.float32(1e-6))
        wanted = np.clip(saturation * times + plus, 0, 1)
        ratio = np.where(saturation > 1e-4, wanted / np.maximum(saturation, np.float32(1e-4)), 1)
        return floats(value - (value - x) * ratio)
