"""Elastic distortion: the image stretched like rubber."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.corruptions._base import Corruption, Pixels, floats
from calibrant.corruptions._pixels import gaussian, sample


@dataclass(frozen=True)
class ElasticTransform(Corruption):
    """A random affine map of the whole image, then small moves of every pixel.

    CIFAR-10-C style. With severity the affine map gets weaker and the small moves stronger, so the kind of damage
    changes more than its size.

    >>> flat = np.full((1, 16, 16, 3), 77, dtype=np.uint8)
    >>> bool((ElasticTransform()(flat, np.random.default_rng(0)) == 77).all())
    True
    """

    title: ClassVar[str] = "Elastic transform"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        moves, smooth, jitter = self.pick(
            (0.0, 0.0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)
        )
        n, height, width = x.shape[:3]
        side = min(height, width)
        rows, columns = _affine(n, height, width, jitter * side, rng)
        moved = sample(x, rows, columns)
        y, x_ = np.mgrid[:height, :width].astype(np.float32)
        shifts = rng.uniform(-1, 1, (2, n, height, width)).astype(np.float32)
        down, right = (gaussian(shift, smooth * side) * floats(moves * side) for shift in shifts)
        return sample(moved, y + down, x_ + right)


def _affine(n: int, height: int, width: int, jitter: float, rng: np.random.Generator) -> tuple[Pixels, Pixels]:
    """The source of each pixel, (n, h, w) each, when three corners of the inner square move by up to `jitter`."""
    third = max(min(height, width) // 3, 1)
    centre = np.array([height // 2, width // 2])
    corners = centre + third * np.array([[1, 1], [1, -1], [-1, -1]])  # (3, 2): row, column
    moved = corners + rng.uniform(-jitter, jitter, (n, 3, 2))
    with_one = np.concatenate([moved, np.ones((n, 3, 1))], axis=2)
    maps = np.linalg.solve(with_one, np.broadcast_to(corners, (n, 3, 2)))  # (n, 3, 2)
    y, x_ = np.mgrid[:height, :width]
    places = np.stack([y, x_, np.ones_like(y)], axis=-1).reshape(-1, 3) @ maps  # (n, h * w, 2)
    places = places.reshape(n, height, width, 2)
    return floats(places[..., 0]), floats(places[..., 1])
