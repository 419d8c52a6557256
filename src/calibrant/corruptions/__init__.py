"""Images under noise, blur, weather and compression, in the style of CIFAR-10-C: one file per corruption."""

from calibrant.core.catalogue import Catalogue
from calibrant.corruptions._base import Corruption

CATALOGUE = Catalogue("calibrant.corruptions", Corruption, "corruption")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Corruption", "find", "make", "names"]
