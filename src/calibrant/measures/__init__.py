"""How calibrated, and how refined, is it? One file a measure; the file name is the name."""

from calibrant.core.catalogue import Catalogue
from calibrant.measures._base import Measure

CATALOGUE = Catalogue(__name__, Measure, "measure")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Measure", "find", "make", "names"]
