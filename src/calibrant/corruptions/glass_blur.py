"""Glass blur: as through frosted glass."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, length
from calibrant.corruptions._pixels import gaussian


@dataclass(frozen=True)
class GlassBlur(Corruption):
    """Blur, then every pixel replaced by a near one, once or twice, then blur again.

    CIFAR-10-C style. The published program means to swap pixels and copies them; so does this one.

    >>> image = np.arange(64, dtype=np.uint8).reshape(1, 8, 8, 1)
    >>> bool((GlassBlur(severity=1)(image, np.random.default_rng(0)) != image).any())
    True
    """

    title: ClassVar[str] = "Glass blur"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        sigma, rounds = self.pick((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))
        scale = length(x)
        reach = min(round(scale), (min(x.shape[1:3]) - 1) // 2)
        blurred = gaussian(x, sigma * scale)
        n, height, width = x.shape[:3]
        image_numbers = np.arange(n)[:, None, None]
        inner = slice(reach, height - reach), slice(reach, width - reach)
        rows, columns = (index[inner] for index in np.mgrid[:height, :width])
        for _ in range(rounds):
            down, right = rng.integers(-reach, reach, (2, n, *rows.shape))
            blurred[:, inner[0], inner[1]] = blurred[image_numbers, rows + down, columns + right]
        return gaussian(blurred, sigma * scale)
