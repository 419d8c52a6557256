"""Images under noise, blur, weather and compression, in the style of CIFAR-10-C: one file a corruption."""

from calibrant.corruptions._base import Corruption
from calibrant.corruptions._catalogue import CATALOGUE

make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Corruption", "find", "make", "names"]
