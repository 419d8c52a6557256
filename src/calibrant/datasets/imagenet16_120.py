"""ImageNet16-120: the first 120 classes of ImageNet at 16 x 16 pixels."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from calibrant.datasets._base import Part
from calibrant.datasets._cifar import pixels_and_labels
from calibrant.datasets._files import absence_error, first_file, place
from calibrant.datasets._published_dataset import PublishedDataset
from calibrant.datasets._unpickle import read_pickled

SIDE, KEPT = 16, 120
BATCHES = {"train": tuple(f"train_data_batch_{i}" for i in range(1, 11)), "test": ("val_data",)}


@dataclass(frozen=True)
class ImageNet16120(PublishedDataset):
    """151,700 training and 6,000 test images, 16 x 16, RGB, 120 classes: the pickled batches of ImageNet16.

    Nothing is unpickled. The classes go by their numbers in the files, 1 to 120, which is not the order of the sorted
    folders of ImageNet.
    """

    title: ClassVar[str] = "ImageNet16-120"
    reference: ClassVar[str] = "Chrabaszcz, Loshchilov, Hutter, arXiv:1707.08819, 2017; Dong, Yang, ICLR 2020"
    source: ClassVar[str] = "https://github.com/D-X-Y/NAS-Bench-201"
    licence: ClassVar[str] = "non-commercial research only"
    mean: ClassVar[tuple[float, ...]] = (122.68 / 255, 116.66 / 255, 104.01 / 255)
    std: ClassVar[tuple[float, ...]] = (63.22 / 255, 61.26 / 255, 65.09 / 255)
    sizes: ClassVar[Mapping[str, int]] = {"train": 151_700, "test": 6000}
    pictures: ClassVar[tuple[int, int, int]] = (16, 3, 120)

    def read(self, part: str) -> Part:
        pixels, labels, ids, before = [], [], [], 0
        for name in BATCHES[part]:
            file = self._file(name)
            data, numbers = pixels_and_labels(file, read_pickled(file), "labels", 3 * SIDE * SIDE)
            rows = np.flatnonzero(numbers <= KEPT)
            pixels.append(data[rows])
            labels.append(numbers[rows] - 1)
            ids.append(rows + before)
            before += len(numbers)
        planes = np.concatenate(pixels).reshape(-1, 3, SIDE, SIDE)
        images = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
        classes = tuple(str(number) for number in range(1, KEPT + 1))
        return Part(images, np.concatenate(labels), classes, np.concatenate(ids))

    def _file(self, name: str) -> Path:
        where = place(self)
        file = first_file([where, where / "ImageNet16"], [name])
        if file is None:
            raise absence_error(self, name)
        return file
