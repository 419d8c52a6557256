"""The .npz files of MedMNIST."""

from pathlib import Path

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.files import damage_error
from calibrant.datasets._base import Dataset, Part
from calibrant.datasets._files import find_file, read_npz

SIZES = (28, 64, 128, 224)


def read_medmnist(dataset: Dataset, name: str, size: int, part: str, classes: tuple[str, ...]) -> Part:
    stem = name if size == SIZES[0] else f"{name}_{size}"
    file = find_file(dataset, f"{stem}.npz", also=[Path.home() / ".medmnist"])  # where the package medmnist puts it
    images, labels = read_npz(file, [f"{part}_images", f"{part}_labels"])
    if images.ndim == 3:
        images = images[..., None]
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:3] != (size, size):
        raise damage_error(file, f"uint8 images of {size} x {size} pixels", f"{images.dtype} {images.shape}")
    if labels.ndim > 2 or labels.shape[1:] not in ((), (1,)) or labels.dtype.kind not in "iu":
        raise damage_error(file, "one label an image", f"{labels.dtype} {labels.shape}")
    return Part(images, labels.reshape(-1).astype(np.int64), classes)


def check_size(size: int) -> None:
    if size not in SIZES:
        known = ", ".join(map(str, SIZES))
        raise InputError("size", expected=f"one of {known}", got=str(size), fix="give one of these")
