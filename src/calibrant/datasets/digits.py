"""Handwritten digits of 8 x 8 pixels, which come with scikit-learn."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.datasets._base import Dataset, Part
from calibrant.datasets._files import no_root

TRAIN = 1500  # of 1797


@dataclass(frozen=True)
class Digits(Dataset):
    """1,500 training and 297 test images, 8 x 8, grey, 10 classes: the first and the last of scikit-learn's digits.

    The published order goes by writer, so the test images are by other people than most of the training images; with
    297 of them, a difference of three points in accuracy is noise.

    >>> test = Digits().load("test")
    >>> test.images.shape, int(test.labels[0]), int(test.ids[0])
    ((297, 8, 8, 1), 1, 1500)
    """

    title: ClassVar[str] = "Optical recognition of handwritten digits"
    reference: ClassVar[str] = "Alpaydin, Kaynak, UCI machine learning repository, 1998"
    source: ClassVar[str] = "https://archive.ics.uci.edu/dataset/80"
    licence: ClassVar[str] = "CC BY 4.0"
    mean: ClassVar[tuple[float, ...]] = (0.3052,)  # of the training images
    std: ClassVar[tuple[float, ...]] = (0.3749,)

    def read(self, part: str) -> Part:
        no_root(self, "scikit-learn")
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise InputError(
                "data set digits",
                expected="scikit-learn, which it comes with",
                got="no such package",
                fix='pip install "calibrant[sklearn]"',
            ) from error
        bunch = load_digits()
        rows = np.arange(TRAIN) if part == "train" else np.arange(TRAIN, len(bunch.target))
        images = np.round(bunch.images[rows] * (255 / 16)).astype(np.uint8)  # published as 0..16
        return Part(images[..., None], bunch.target[rows].astype(np.int64), tuple("0123456789"), rows)
