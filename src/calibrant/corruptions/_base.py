"""Base class of corruptions: images in, images of the same shape out, the same for the same seed."""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.core.catalogue import check_options
from calibrant.core.errors import InputError
from calibrant.core.parallel import pieces

Bytes = npt.NDArray[np.uint8]
Pixels = npt.NDArray[np.float32]  # (n, height, width, channels), 0 is black and 1 is white

T = TypeVar("T")

AT_ONCE = 2_000_000  # values; keeps what a corruption needs on the way below about 100 MB
SMALL = 32  # pixels a side of the images that the published severities are for


@dataclass(frozen=True)
class Corruption:
    """A corruption of images, at one of five severities.

    The five settings are CIFAR-10-C's, for images of 32 pixels a side. Lengths in pixels (of a blur, say) grow with
    larger images and stay as they are for smaller ones. Results are rounded, not cut, to whole bytes.
    """

    severity: int = 3

    title: ClassVar[str]
    reference: ClassVar[str] = "Hendrycks, Dietterich, ICLR 2019"
    usual: ClassVar[bool] = True  # one of the 15 that are averaged; the others are for choosing options

    def __post_init__(self) -> None:
        check_options(self)
        if not 1 <= self.severity <= 5:
            raise InputError("severity", expected="1 to 5", got=str(self.severity), fix="give another one")

    def __call__(self, images: Bytes, rng: np.random.Generator) -> Bytes:
        """The images, uint8 (n, height, width, 1 or 3), corrupted."""
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3) or 0 in images.shape[1:]:
            raise InputError(
                "images",
                expected="uint8 (n, height, width, 1 or 3)",
                got=f"{images.dtype} {images.shape}",
                fix="convert them: values from 0 to 255, channels last",
            )
        corrupted = np.empty_like(images)
        for rows in pieces(len(images), max(1, AT_ONCE // images[:1].size) if len(images) else 1):
            changed = self.change(images[rows].astype(np.float32) / np.float32(255), rng)
            corrupted[rows] = np.rint(np.clip(changed, 0, 1) * 255)
        return corrupted

    def change(self, x: Pixels, rng: np.random.Generator) -> Pixels:
        """The pixels, corrupted; values outside 0..1 are cut afterwards."""
        raise TypeError(f"{type(self).__name__} does not say what it does: define change")

    def pick(self, *five: T) -> T:
        """The setting of this severity."""
        return five[self.severity - 1]


def length(x: Pixels) -> float:
    """The number of pixels that a pixel of a small image corresponds to."""
    return max(1.0, float(min(x.shape[1:3])) / SMALL)


def floats(values: npt.ArrayLike) -> Pixels:
    return np.asarray(values, dtype=np.float32)
