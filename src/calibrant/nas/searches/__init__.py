"""Searches over architectures: one file each; the file name is the name."""

from calibrant.core.catalogue import Catalogue
from calibrant.nas.searches._base import Landscape, Objective, Search, Trial

CATALOGUE = Catalogue("calibrant.nas.searches", Search, "search")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Landscape", "Objective", "Search", "Trial", "find", "make", "names"]
