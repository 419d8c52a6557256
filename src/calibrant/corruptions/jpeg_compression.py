"""JPEG compression."""

import io
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.corruptions._base import Corruption, Pixels, floats


@dataclass(frozen=True)
class JPEGCompression(Corruption):
    """Written as a JPEG of quality 80 down to 40, and read again.

    CIFAR-10-C style. Needs pillow; another version of its JPEG library may give slightly other pixels.

    >>> flat = np.full((1, 16, 16, 3), 77, dtype=np.uint8)
    >>> bool((abs(JPEGCompression()(flat, np.random.default_rng(0)) - 77.0) <= 1).all())
    True
    """

    title: ClassVar[str] = "JPEG compression"

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        pillow, quality = _pillow(), self.pick(80, 65, 58, 50, 40)
        images = np.rint(x * 255).astype(np.uint8)
        read = np.empty_like(images)
        for row, image in enumerate(images):
            stream = io.BytesIO()
            pillow.fromarray(image[..., 0] if x.shape[3] == 1 else image).save(stream, "JPEG", quality=quality)
            with pillow.open(stream) as opened:
                read[row] = np.asarray(opened).reshape(image.shape)
        return floats(read) / np.float32(255)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise InputError(
            "jpeg_compression",
            expected="pillow, which writes JPEG files",
            got="no such package",
            fix='pip install "calibrant[train]"',
        ) from error
    return Image
