"""SVHN: house numbers, for networks that have never seen digits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.core.files import damage_error
from calibrant.core.io.npz import BROKEN
from calibrant.datasets._base import Part
from calibrant.datasets._cifar import MEAN, STD
from calibrant.datasets._files import find_file
from calibrant.datasets._published_dataset import PublishedDataset


@dataclass(frozen=True)
class SVHN(PublishedDataset):
    """26,032 test images of digits, 32 x 32, RGB: the file test_32x32.mat.

    For out-of-distribution tests of networks trained on CIFAR, whose normalisation it has: its labels are digits, and
    say nothing about CIFAR's classes.
    """

    title: ClassVar[str] = "Street view house numbers"
    reference: ClassVar[str] = "Netzer, Wang, Coates, Bissacco, Wu, Ng, NIPS workshop 2011"
    source: ClassVar[str] = "http://ufldl.stanford.edu/housenumbers"
    licence: ClassVar[str] = "non-commercial use only"
    parts: ClassVar[tuple[str, ...]] = ("test",)
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD
    sizes: ClassVar[Mapping[str, int]] = {"test": 26_032}

    def read(self, part: str) -> Part:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        file = find_file(self, "test_32x32.mat")
        try:
            arrays = loadmat(file, variable_names=["X", "y"])
            X, y = arrays["X"], arrays["y"]
        except (MatReadError, *BROKEN) as error:
            raise damage_error(file, "a Matlab file with X and y", error) from error
        if X.dtype != np.uint8 or X.ndim != 4 or X.shape[:3] != (32, 32, 3):
            raise damage_error(file, "X of type uint8 and shape (32, 32, 3, n)", f"{X.dtype} {X.shape}")
        labels = y.reshape(-1).astype(np.int64)
        if not ((labels >= 1) & (labels <= 10)).all():
            raise damage_error(file, "labels in 1..10, where 10 is the digit 0", f"{labels.min()} to {labels.max()}")
        images = np.ascontiguousarray(X.transpose(3, 0, 1, 2))
        return Part(images, labels % 10, tuple("0123456789"))
