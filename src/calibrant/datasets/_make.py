"""The catalogue of data sets."""

import dataclasses

from calibrant.core.catalogue import Catalogue
from calibrant.datasets._base import Dataset

CATALOGUE = Catalogue("calibrant.datasets", Dataset, "data set")


def make(spec: str, root: str = "") -> Dataset:
    """A data set from its name; `cifar10.1` and `cifar-10.1` are cifar10_1. `root` is where its files are."""
    dataset = CATALOGUE.make(plain_spec(spec))
    return dataclasses.replace(dataset, root=root) if root else dataset


def plain_spec(spec: str, root: str = "") -> str:
    """The text that names a data set as its file does, with the root as an option of it.

    >>> plain_spec("CIFAR-10.1", "/data"), plain_spec("folder:root=images", "/data")
    ('cifar10_1:root=/data', 'folder:root=/data')
    """
    name, _, options = spec.partition(":")
    if not name.endswith(".py"):
        name = name.lower().replace("cifar-", "cifar").replace(".", "_").replace("-", "_")
    if root:
        others = (part for part in options.split(",") if part and not part.strip().startswith("root="))
        options = ",".join([*others, f"root={root}"])
    return f"{name}:{options}" if options else name
