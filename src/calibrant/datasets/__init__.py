"""Data sets of images and labels: one file each; the file name is the name (`cifar10.1` is cifar10_1.py)."""

from typing import Any

from calibrant.datasets._base import Bytes, Dataset, Part, Window
from calibrant.datasets._fingerprint import fingerprint, user_root
from calibrant.datasets._image_cache import progress_to
from calibrant.datasets._make import CATALOGUE, make, plain_spec
from calibrant.datasets._published_dataset import PublishedDataset
from calibrant.datasets._splits import Splits, half_rows, halves, split, split_sizes
from calibrant.datasets._unpickle import StoredTensor, read_pickled

names, find = CATALOGUE.names, CATALOGUE.find

__all__ = [
    "CATALOGUE",
    "Bytes",
    "Dataset",
    "Part",
    "PublishedDataset",
    "Splits",
    "StoredTensor",
    "Window",
    "find",
    "fingerprint",
    "half_rows",
    "halves",
    "make",
    "names",
    "plain_spec",
    "progress_to",
    "read_pickled",
    "split",
    "split_sizes",
    "user_root",
]


def __getattr__(name: str) -> Any:
    """The classes in the files, each loaded when it is first used."""
    return CATALOGUE.class_named(name)


def __dir__() -> list[str]:
    return [*__all__, *CATALOGUE.classes]
