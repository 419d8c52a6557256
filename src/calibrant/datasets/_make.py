"""The catalogue of data sets."""

import dataclasses

from calibrant.core.catalogue import Catalogue
from calibrant.datasets._base import Dataset

CATALOGUE = Catalogue("calibrant.datasets", Dataset, "data set")


def make(spec: str, root: str = "") -> Dataset:
    """A data set from its name; `cifar10.1` and `cifar-10.1` are cifar10_1. `root` is where its files are."""
    name, colon, options = spec.partition(":")
    if not name.endswith(".py"):
        name = name.lower().replace("cifar-", "cifar").replace(".", "_").replace("-", "_")
    dataset = CATALOGUE.make(f"{name}{colon}{options}")
    return dataclasses.replace(dataset, root=root) if root else dataset
