"""Fashion-MNIST: 28 x 28 grey images of ten kinds of clothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from calibrant.datasets._base import Part
from calibrant.datasets._files import absence_error, first_file, place, read_idx
from calibrant.datasets._published_dataset import PublishedDataset

CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
MEAN, STD = (0.2860,), (0.3530,)  # of the 60,000 training images
DEBIAN = Path("/usr/share/datasets/fashion-mnist")


@dataclass(frozen=True)
class FashionMNIST(PublishedDataset):
    """60,000 training and 10,000 test images, 28 x 28, grey, 10 classes: the four idx files, plain or .gz.

    Without a root it also looks where Debian's package dataset-fashion-mnist puts the files.
    """

    title: ClassVar[str] = "Fashion-MNIST"
    reference: ClassVar[str] = "Xiao, Rasul, Vollgraf, arXiv:1708.07747, 2017"
    source: ClassVar[str] = "https://github.com/zalandoresearch/fashion-mnist"
    licence: ClassVar[str] = "MIT"
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD
    sizes: ClassVar[Mapping[str, int]] = {"train": 60_000, "test": 10_000}
    pictures: ClassVar[tuple[int, int, int]] = (28, 1, 10)

    def read(self, part: str) -> Part:
        stem = {"train": "train", "test": "t10k"}[part]
        images = read_idx(self._file(f"{stem}-images-idx3-ubyte"), 3)
        labels = read_idx(self._file(f"{stem}-labels-idx1-ubyte"), 1)
        return Part(images[..., None], labels.astype("int64"), CLASSES)

    def _file(self, name: str) -> Path:
        folders = [place(self)] if self.root else [place(self), DEBIAN]
        file = first_file(folders, [name, f"{name}.gz", name.replace("-idx", ".idx")])
        if file is None:
            raise absence_error(self, f"{name} or {name}.gz")
        return file
