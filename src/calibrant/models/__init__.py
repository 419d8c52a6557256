"""Networks: one file per family; the file name is the name."""

from typing import Any

from calibrant.models._base import Model, Network, Shape, count
from calibrant.models._make import CATALOGUE, build

make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Model", "Network", "Shape", "build", "count", "find", "make", "names"]


def __getattr__(name: str) -> Any:
    """The classes in the files, each loaded when it is first used."""
    return CATALOGUE.class_named(name)


def __dir__() -> list[str]:
    return [*__all__, *CATALOGUE.classes]
