"""The catalogue of data sets."""

from calibrant.core.catalogue import Catalogue
from calibrant.datasets._base import Dataset

CATALOGUE = Catalogue("calibrant.datasets", Dataset, "data set")


def make(spec: str) -> Dataset:
    """A data set from its name; `cifar10.1` and `cifar-10.1` are cifar10_1."""
    name, colon, options = spec.partition(":")
    if not name.endswith(".py"):
        name = name.replace("cifar-", "cifar").replace(".", "_").replace("-", "_").lower()
    return CATALOGUE.make(f"{name}{colon}{options}")
