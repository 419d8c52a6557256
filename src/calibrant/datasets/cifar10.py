"""CIFAR-10: 32 x 32 colour images of ten kinds of things."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from calibrant.datasets._base import Part
from calibrant.datasets._cifar import CLASSES, MEAN, STD, CifarFiles, read_cifar
from calibrant.datasets._published_dataset import PublishedDataset

LAYOUT = CifarFiles(
    batches={"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)},
    folders=("cifar-10-batches-bin", "cifar-10-batches-py"),
    label_bytes=1,
    key="labels",
    column="",  # the only one with numbers
    classes=CLASSES,
)
NATS_MEAN = (125.3 / 255, 123.0 / 255, 113.9 / 255)
NATS_STD = (63.0 / 255, 62.1 / 255, 66.7 / 255)  # of single pixels; the usual ones are means over images, and smaller


@dataclass(frozen=True)
class CIFAR10(PublishedDataset):
    """50,000 training and 10,000 test images, 32 x 32, RGB, 10 classes.

    Reads the binary version, the Python version (without unpickling) and the hub's Parquet files, in this order; a
    Parquet file of JPEGs holds slightly other pixels than the original.
    """

    normalise: Literal["usual", "nats"] = "usual"  # nats: by the constants of NATS-Bench, for its networks

    title: ClassVar[str] = "CIFAR-10"
    reference: ClassVar[str] = "Krizhevsky, Learning multiple layers of features from tiny images, 2009"
    source: ClassVar[str] = "https://www.cs.toronto.edu/~kriz/cifar.html"
    licence: ClassVar[str] = "not stated"
    mean: ClassVar[tuple[float, ...]] = MEAN
    std: ClassVar[tuple[float, ...]] = STD
    sizes: ClassVar[Mapping[str, int]] = {"train": 50_000, "test": 10_000}
    pictures: ClassVar[tuple[int, int, int]] = (32, 3, 10)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalise == "nats":
            object.__setattr__(self, "mean", NATS_MEAN)
            object.__setattr__(self, "std", NATS_STD)

    def read(self, part: str) -> Part:
        return read_cifar(self, part, LAYOUT)
