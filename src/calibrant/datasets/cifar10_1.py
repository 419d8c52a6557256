"""CIFAR-10.1: new test images for CIFAR-10, collected a decade later."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.core.files import damage_error
from calibrant.datasets._base import Part
from calibrant.datasets._cifar import CLASSES, MEAN, STD
from calibrant.datasets._files import absence_error, first_file, place, read_npy
from calibrant.datasets._published_dataset import PublishedDataset

SIZES = {"v6": 2000, "v4": 2021}


@dataclass(frozen=True)
class CIFAR101(PublishedDataset):
    """Test images like CIFAR-10's: v6 has 2,000, as many of each class; v4 has 2,021. Two .npy files.

    A test set only: accuracy on it is lower than on CIFAR-10's own, and calibration usually worse.
    """

    version: Literal["v6", "v4"] = "v6"

    title: ClassVar[str] = "CIFAR-10.1"
    reference: ClassVar[str] = "Recht, Roelofs, Schmidt, Shankar, arXiv:1806.00451, 2018"
    source: ClassVar[str] = "https://github.com/modestyachts/CIFAR-10.1"
    licence: ClassVar[str] = "MIT"
    parts: ClassVar[tuple[str, ...]] = ("test",)
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD

    def published_size(self, part: str) -> int:
        return SIZES[self.version]

    def read(self, part: str) -> Part:
        where = place(self)
        names = [f"cifar10.1_{self.version}_{array}.npy" for array in ("data", "labels")]
        data, labels = (first_file([where, where / "datasets"], [name]) for name in names)
        if data is None or labels is None:
            raise absence_error(self, " and ".join(names))
        images, numbers = read_npy(data), read_npy(labels)
        if images.shape[1:] != (32, 32, 3):
            raise damage_error(data, "images of shape (n, 32, 32, 3)", images.shape)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise damage_error(labels, "whole numbers", f"{numbers.dtype} {numbers.shape}")
        return Part(images, numbers.astype("int64"), CLASSES)
