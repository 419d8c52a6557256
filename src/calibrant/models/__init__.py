"""Networks: one file per family; the file name is the name."""

from calibrant.models._base import Model, Network, Shape, count
from calibrant.models._make import CATALOGUE, build

make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Model", "Network", "Shape", "build", "count", "find", "make", "names"]
