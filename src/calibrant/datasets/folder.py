"""A user's own images in folders: one folder per class."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from calibrant.core.errors import InputError
from calibrant.datasets._base import Dataset, Part
from calibrant.datasets._decode import Colour, Fit, picture_of
from calibrant.datasets._files import absence_error, place
from calibrant.datasets._folders import check_size, class_folders, listing

FOLDERS = {"train": ("train",), "val": ("val", "valid", "validation"), "test": ("test",)}
KEPT_BYTES = 4 * 2**30  # larger sets are decoded when they are asked for, again and again, and fill no disk


@dataclass(frozen=True)
class Folder(Dataset):
    """Images in train/<class>/, test/<class>/ and, if there, val/<class>/: JPEG, PNG and other files of pixels.

    Classes are the folders of train, sorted as text: 10 comes before 2. Images of different sizes need the option size.
    """

    size: int = 0  # pixels a side; 0: the size they have, which must be the same for all
    fit: Fit = "crop"  # crop: shorter side to size, centre of it; squash: the whole image, whatever its shape
    colour: Colour = "auto"  # auto: grey if all training images are

    title: ClassVar[str] = "Images in folders"
    reference: ClassVar[str] = "your own"
    parts: ClassVar[tuple[str, ...]] = ("train", "val", "test")
    may_miss: ClassVar[tuple[str, ...]] = ("val", "test")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size("folder:size", self.size, 0)

    def read(self, part: str) -> Part:
        if not self.root:
            raise InputError("data set folder", expected="a root", got="none", fix="write folder:root=FOLDER")
        train, folder = self._folder("train"), self._folder(part)
        classes = class_folders(train)
        by = listing(train, classes)
        files = by if part == "train" else listing(folder, classes)
        if not by.names or not files.names:
            raise absence_error(self, "images in one folder per class", train if not by.names else folder)
        picture = picture_of(by.read_encoded(), self.size, self.colour, self.fit)
        small = len(files.names) * np.prod(picture.shape) <= KEPT_BYTES
        images = files.as_array("folder", picture) if small else files.as_files(picture)
        return Part(images, files.labels, tuple(classes))

    def _folder(self, part: str) -> Path:
        where = place(self)
        folder = next((where / name for name in FOLDERS[part] if (where / name).is_dir()), None)
        if folder is None:
            raise absence_error(self, f"{FOLDERS[part][0]}/<class>/ with images")
        return folder
