"""CIFAR-10-C: the test images of CIFAR-10 under common corruptions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.files import damage_error
from calibrant.datasets._base import Part
from calibrant.datasets._cifar import CLASSES, MEAN, STD
from calibrant.datasets._files import absence_error, first_file, place, read_npy
from calibrant.datasets._published_dataset import PublishedDataset

SEVERITIES = 5
CorruptionName = Literal[
    "gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur",
    "snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression",
    "speckle_noise", "gaussian_blur", "spatter", "saturate",
]  # fmt: skip


@dataclass(frozen=True)
class CIFAR10C(PublishedDataset):
    """10,000 test images of CIFAR-10 under one of 19 corruptions at a severity of 1 to 5: one .npy file a corruption.

    A test set only. The last four corruptions (speckle_noise, gaussian_blur, spatter, saturate) are meant for choosing
    options, and are not in the usual average over 15.
    """

    corruption: CorruptionName = "gaussian_noise"
    severity: int = 3

    title: ClassVar[str] = "CIFAR-10-C"
    reference: ClassVar[str] = "Hendrycks, Dietterich, ICLR 2019"
    source: ClassVar[str] = "https://zenodo.org/records/2535967"
    licence: ClassVar[str] = "CC BY 4.0"
    parts: ClassVar[tuple[str, ...]] = ("test",)
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD
    sizes: ClassVar[Mapping[str, int]] = {"test": 10_000}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.severity <= SEVERITIES:
            raise InputError(
                "cifar10_c:severity", expected=f"1 to {SEVERITIES}", got=str(self.severity), fix="give another one"
            )

    def read(self, part: str) -> Part:
        where = place(self)
        names = [f"{self.corruption}.npy", "labels.npy"]
        images_in, labels_in = (first_file([where, where / "CIFAR-10-C"], [name]) for name in names)
        if images_in is None or labels_in is None:
            raise absence_error(self, " and ".join(names))
        images, labels = read_npy(images_in), read_npy(labels_in)
        if images.shape[1:] != (32, 32, 3):
            raise damage_error(images_in, "images of shape (n, 32, 32, 3)", images.shape)
        if labels.shape != (len(images),) or len(labels) % SEVERITIES or labels.dtype.kind not in "iu":
            raise damage_error(
                labels_in, f"{len(images)} labels, as many for each severity", f"{labels.dtype} {labels.shape}"
            )
        images_per_severity = len(labels) // SEVERITIES
        rows = np.arange((self.severity - 1) * images_per_severity, self.severity * images_per_severity)
        return Part(images[rows[0] : rows[-1] + 1], labels[rows].astype(np.int64), CLASSES, rows)
