"""BloodMNIST: blood cells under the microscope, from MedMNIST."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from calibrant.datasets._base import Part
from calibrant.datasets._medmnist import check_size, read_medmnist
from calibrant.datasets._published_dataset import PublishedDataset
from calibrant.datasets.medmnist import CLASSES


@dataclass(frozen=True)
class BloodMNIST(PublishedDataset):
    """11,959 training, 1,712 validation and 3,421 test images, RGB, 8 classes: the file bloodmnist.npz.

    The classes are not equally common: the rarest has a third as many images as the commonest.
    """

    size: int = 28  # or 64, 128, 224: the file bloodmnist_<size>.npz

    title: ClassVar[str] = "BloodMNIST"
    reference: ClassVar[str] = "Yang, Shi, Wei, Liu, Zhao, Ke, Pfister, Ni, Scientific Data 10, 2023"
    source: ClassVar[str] = "https://medmnist.com"
    licence: ClassVar[str] = "CC BY 4.0"
    parts: ClassVar[tuple[str, ...]] = ("train", "val", "test")
    mean: ClassVar[tuple[float, ...]] = (0.5, 0.5, 0.5)
    std: ClassVar[tuple[float, ...]] = (0.5, 0.5, 0.5)
    sizes: ClassVar[Mapping[str, int]] = {"train": 11_959, "val": 1712, "test": 3421}
    pictures: ClassVar[tuple[int, int, int]] = (28, 3, 8)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.size)

    def read(self, part: str) -> Part:
        return read_medmnist(self, "bloodmnist", self.size, part, CLASSES["bloodmnist"])
