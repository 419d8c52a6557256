"""Zoom blur: the camera moved towards the scene."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, identity, kron

from calibrant.corruptions._base import Corruption, Pixels, floats
from calibrant.corruptions._pixels import zooms


@dataclass(frozen=True)
class ZoomBlur(Corruption):
    """The mean of the image and of its centre enlarged by up to 6 to 26 %, in steps of 1 %.

    CIFAR-10-C style. The middle of the image stays sharp. Nothing is drawn.

    >>> flat = np.full((1, 9, 9, 3), 77, dtype=np.uint8)
    >>> bool((ZoomBlur()(flat, np.random.default_rng(0)) == 77).all())
    True
    """

    title: ClassVar[str] = "Zoom blur"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        steps = self.pick(6, 11, 16, 21, 26)
        n, height, width, channels = x.shape
        mixing = 2 * identity(height * width, format="csr", dtype=np.float32)  # once as it is, once as the zoom of 0 %
        for step in range(1, steps):
            rows, columns = zooms(x, 1 + step / 100)
            mixing = mixing + kron(csr_array(rows), csr_array(columns), format="csr")
        places = x.transpose(1, 2, 0, 3).reshape(height * width, n * channels)
        mixed = floats(mixing @ places) / np.float32(steps + 1)
        return mixed.reshape(height, width, n, channels).transpose(2, 0, 1, 3)
