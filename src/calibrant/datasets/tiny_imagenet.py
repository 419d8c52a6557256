"""Tiny-ImageNet: 200 classes of ImageNet at 64 x 64 pixels."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from calibrant.core.files import damage_error
from calibrant.datasets._base import Part
from calibrant.datasets._decode import Picture
from calibrant.datasets._files import absence_error, place
from calibrant.datasets._folders import Listing, class_folders, listing
from calibrant.datasets._published_dataset import PublishedDataset
from calibrant.datasets.imagenet import MEAN, STD

PICTURE = Picture(64, 64, 3)


@dataclass(frozen=True)
class TinyImageNet(PublishedDataset):
    """100,000 training and 10,000 test images, 64 x 64, RGB, 200 classes: the folder tiny-imagenet-200.

    `test` is the published validation part, the only other one with labels. Some images are grey: they become RGB.
    """

    title: ClassVar[str] = "Tiny-ImageNet"
    reference: ClassVar[str] = "Le, Yang, Stanford CS 231N, 2015"
    source: ClassVar[str] = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
    licence: ClassVar[str] = "non-commercial research only"
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD
    sizes: ClassVar[Mapping[str, int]] = {"train": 100_000, "test": 10_000}
    pictures: ClassVar[tuple[int, int, int]] = (64, 3, 200)

    def read(self, part: str) -> Part:
        where = place(self)
        folder = next((f for f in (where, where / "tiny-imagenet-200") if (f / "train").is_dir()), None)
        if folder is None:
            raise absence_error(self, "train/<wnid>/images/*.JPEG, val/images/*.JPEG and val/val_annotations.txt")
        classes = class_folders(folder / "train")
        files = listing(folder / "train", classes, "images") if part == "train" else self._val(folder / "val", classes)
        return Part(files.as_array("tiny_imagenet", PICTURE), files.labels, tuple(classes))

    def _val(self, folder: Path, classes: list[str]) -> Listing:
        notes = folder / "val_annotations.txt"
        if not notes.exists():
            raise absence_error(self, "val_annotations.txt", folder)
        number = {name: label for label, name in enumerate(classes)}
        names, labels = [], []
        for line in notes.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, rest = line.partition("\t")
            wnid = rest.partition("\t")[0]
            if wnid not in number or not (folder / "images" / name).is_file():
                raise damage_error(
                    notes, "the name of an image in images/, a tab and one of the training classes", line
                )
            names.append(f"images/{name}")
            labels.append(number[wnid])
        return Listing(folder, names, np.array(labels, dtype=np.int64))
