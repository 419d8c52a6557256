"""Snow."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats, length
from calibrant.corruptions._pixels import grey, streak, stretch, zooms


@dataclass(frozen=True)
class Snow(Corruption):
    """Flakes that fall in streaks, before an image that is a little paler.

    CIFAR-10-C style. Streaks are rounded to whole pixels.

    >>> black = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    >>> bool(Snow()(black, np.random.default_rng(0)).max() > 50)
    True
    """

    title: ClassVar[str] = "Snow"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        density, spread, size, least, radius, sigma, share = self.pick(
            (0.10, 0.2, 1.00, 0.60, 8, 3, 0.95),
            (0.10, 0.2, 1.00, 0.50, 10, 4, 0.90),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.90),
            (0.25, 0.3, 2.25, 0.60, 12, 6, 0.85),
            (0.30, 0.3, 1.25, 0.65, 14, 12, 0.80),
        )
        scale = length(x)
        flakes = floats(rng.normal(density, spread, (*x.shape[:3], 1)))
        flakes = stretch(flakes, *zooms(flakes, size * scale))
        flakes = np.clip(np.where(flakes < least, 0, flakes), 0, 1)
        flakes = streak(flakes, radius * scale, sigma * scale, rng.uniform(-135, -45, len(x)))
        pale = np.maximum(x, 1.5 * grey(x) + 0.5)
        return floats(share * x + (1 - share) * pale + flakes + flakes[:, ::-1, ::-1])
