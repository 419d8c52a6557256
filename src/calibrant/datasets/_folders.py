"""Images in folders, one folder per class."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError
from calibrant.core.files import read_regular
from calibrant.datasets._base import Bytes
from calibrant.datasets._decode import Encoded, ImageFiles, Picture
from calibrant.datasets._decoded_images import decode_images

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif")


@dataclass(frozen=True)
class Listing:
    """Image files below a folder, and their labels."""

    folder: Path
    names: list[str]
    labels: Ints

    @property
    def files(self) -> list[Path]:
        return [self.folder / name for name in self.names]

    def read_encoded(self) -> list[Encoded]:
        return [(str(file), partial(read_regular, file)) for file in self.files]

    def as_files(self, picture: Picture) -> ImageFiles:
        return ImageFiles(self.folder, self.names, picture)

    def as_array(self, name: str, picture: Picture) -> Bytes:
        return decode_images(name, self.files, str(picture), len(self.names), lambda: picture, self.read_encoded)


def class_folders(folder: Path) -> list[str]:
    """The names of the folders in a folder, sorted."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def listing(folder: Path, classes: Sequence[str], inside: str = "") -> Listing:
    """The images in one folder per class (in its folder `inside`): by class, then by name."""
    if unknown := sorted(set(class_folders(folder)) - set(classes)):
        raise InputError(
            str(folder),
            expected="folders with the names of the training classes",
            got=f"the folder {unknown[0]}",
            fix="use one set of class folders in every part",
        )
    names, labels = [], []
    for label, name in enumerate(classes):
        images = image_names(folder / name / inside)
        names += [os.path.join(name, inside, image) for image in images]
        labels += [label] * len(images)
    return Listing(folder, names, np.array(labels, dtype=np.int64))


def image_names(folder: Path) -> list[str]:
    """The names of the image files in a folder, sorted; none if there is no such folder."""
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.name.lower().endswith(SUFFIXES))


def check_size(what: str, size: int, least: int) -> None:
    if size < least:
        raise InputError(what, expected=f"at least {least} pixels a side", got=str(size), fix="give another size")
