"""Frost: ice on the lens."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats, length
from calibrant.corruptions._pixels import gaussian, plasma

TINT = (0.85, 0.95, 1.0)  # ice is a little blue


@dataclass(frozen=True)
class Frost(Corruption):
    """The image darkened, and a pattern of ice added.

    CIFAR-10-C style, and the one that departs most: the published set uses photographs of ice; here the pattern is
    made of ridges in noise, on clouds, and added more strongly from severity 3 on so that damage still grows.

    >>> black = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    >>> bool(Frost()(black, np.random.default_rng(0)).mean() > 20)
    True
    """

    title: ClassVar[str] = "Frost"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        share, ice = self.pick((1.0, 0.2), (1.0, 0.3), (0.9, 0.45), (0.85, 0.55), (0.75, 0.65))
        tint = floats(TINT if x.shape[3] == 3 else [1.0])
        return floats(share * x + ice * _ice(x, rng)[..., None] * tint)


def _ice(x: Pixels, rng: np.random.Generator) -> Pixels:
    """Bright lines where smoothed noise changes its sign, denser in some places: (n, h, w), 0 to 1."""
    shape, scale = x.shape[:3], length(x)
    needles = np.zeros(shape, dtype=np.float32)
    for width in (0.7, 1.5):
        noise = gaussian(floats(rng.standard_normal(shape)), width * scale)
        spread = noise.std(axis=(1, 2), keepdims=True)
        needles = np.maximum(needles, np.exp(-np.abs(noise) / np.maximum(0.4 * spread, np.float32(1e-6))))
    return floats(0.3 + 0.7 * needles) * floats(0.5 + 0.5 * plasma(shape, 2.0, rng))
