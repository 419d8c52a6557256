"""Defocus blur: every point becomes a disk."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.ndimage import gaussian_filter

from calibrant.corruptions._base import Corruption, Pixels, floats, length
from calibrant.corruptions._pixels import between, convolve

REACH = 3  # pixels of a small image from the centre of a disk to where there is nothing of it left


@dataclass(frozen=True)
class DefocusBlur(Corruption):
    """Every pixel becomes a disk of radius 0.3 to 1.5, with a soft edge.

    CIFAR-10-C style. Up to severity 3 the disk is one pixel of a small image, and all of the blur is the soft edge.

    >>> dot = np.zeros((1, 9, 9, 1), dtype=np.uint8)
    >>> dot[0, 4, 4] = 255
    >>> int(DefocusBlur(severity=5)(dot, np.random.default_rng(0))[0, 4, 4, 0])  # a disk of nine pixels
    28
    """

    title: ClassVar[str] = "Defocus blur"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        radius, edge = self.pick((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1.0, 0.2), (1.5, 0.1))
        y, x_ = np.mgrid[-REACH : REACH + 1, -REACH : REACH + 1]
        disk = (y**2 + x_**2 <= radius**2).astype(np.float32)
        soft = gaussian_filter(disk, edge, mode="constant", radius=1)
        scale = length(x)
        reach = int(REACH * scale)
        enlarge = between(np.arange(-reach, reach + 1) / scale + REACH, 2 * REACH + 1)
        kernel = enlarge @ soft @ enlarge.T
        return convolve(x, floats(kernel / kernel.sum()))
