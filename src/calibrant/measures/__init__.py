"""How calibrated, and how refined, is it? One file a measure; the file name is the name."""

from calibrant.measures._base import Measure
from calibrant.measures._catalogue import CATALOGUE
from calibrant.measures._measure import Measurement, measure, measure_all

make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Measure", "Measurement", "find", "make", "measure", "measure_all", "names"]
