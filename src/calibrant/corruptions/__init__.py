"""Corruptions of images in the style of CIFAR-10-C: noise, blur, weather, compression; one file each."""

from typing import Any

from calibrant.core.catalogue import Catalogue
from calibrant.corruptions._base import Corruption

CATALOGUE = Catalogue("calibrant.corruptions", Corruption, "corruption")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Corruption", "find", "make", "names"]


def __getattr__(name: str) -> Any:
    """The classes in the files, each loaded when it is first used."""
    return CATALOGUE.class_named(name)


def __dir__() -> list[str]:
    return [*__all__, *CATALOGUE.classes]
