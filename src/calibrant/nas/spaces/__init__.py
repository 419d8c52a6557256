"""Spaces of architectures: one file each; the file name is the name."""

from calibrant.core.catalogue import Catalogue
from calibrant.nas.spaces._base import Layer, Space

CATALOGUE = Catalogue("calibrant.nas.spaces", Space, "space")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Layer", "Space", "find", "make", "names"]
