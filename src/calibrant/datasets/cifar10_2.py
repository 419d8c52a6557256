"""CIFAR-10.2: another new test set for CIFAR-10."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.files import damage_error
from calibrant.datasets._base import Part
from calibrant.datasets._cifar import CLASSES, MEAN, STD
from calibrant.datasets._files import find_file, read_npz
from calibrant.datasets._published_dataset import PublishedDataset


@dataclass(frozen=True)
class CIFAR102(PublishedDataset):
    """2,000 test images like CIFAR-10's: the file cifar102_test.npz.

    A test set only; the 10,000 training images published with it are not used.
    """

    title: ClassVar[str] = "CIFAR-10.2"
    reference: ClassVar[str] = "Lu, Nott, Olson, Todeschini, Vahabi, Carmon, Schmidt, ICML workshop 2020"
    source: ClassVar[str] = "https://github.com/modestyachts/cifar-10.2"
    licence: ClassVar[str] = "not stated"
    parts: ClassVar[tuple[str, ...]] = ("test",)
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD
    sizes: ClassVar[Mapping[str, int]] = {"test": 2000}

    def read(self, part: str) -> Part:
        file = find_file(self, "cifar102_test.npz")
        images, labels = read_npz(file, ["images", "labels"])
        if images.shape[1:] != (32, 32, 3):
            raise damage_error(file, "images of shape (n, 32, 32, 3)", images.shape)
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise damage_error(file, "labels that are whole numbers", f"{labels.dtype} {labels.shape}")
        return Part(images, labels.astype("int64"), CLASSES)
