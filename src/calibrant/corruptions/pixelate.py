"""Pixelation: a smaller image, enlarged."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats
from calibrant.corruptions._pixels import stretch


@dataclass(frozen=True)
class Pixelate(Corruption):
    """Reduced to 95 down to 65 % of its size by averaging whole pixels, and enlarged again by repeating pixels.

    CIFAR-10-C style. It draws nothing: the random generator is not used.

    >>> image = np.array([0, 100, 200, 250], dtype=np.uint8).reshape(1, 1, 4, 1)
    >>> Pixelate(severity=5)(image, np.random.default_rng(0)).reshape(-1).tolist()  # two pixels are left
    [50, 50, 225, 225]
    """

    title: ClassVar[str] = "Pixelate"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        share = self.pick(0.95, 0.9, 0.85, 0.75, 0.65)
        rows, columns = (_build_repeat(size, max(int(size * share), 1)) for size in x.shape[1:3])
        return stretch(x, rows, columns)


def _build_repeat(size: int, fewer: int) -> Pixels:
    """The matrix that averages a line into `fewer` values and repeats those to the old size: (size, size)."""
    pixels, step = np.arange(size), size / fewer
    offsets = pixels + 0.5 - (np.arange(fewer)[:, None] + 0.5) * step
    inside = (offsets > -step / 2) & (offsets <= step / 2)  # whole pixels, by where their middle is, as pillow does
    averages = inside / inside.sum(axis=1, keepdims=True)  # (fewer, size)
    nearest = np.minimum(((pixels + 0.5) / step).astype(int), fewer - 1)
    return floats(averages[nearest])
