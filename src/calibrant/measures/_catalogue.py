"""The catalogue of measures: the files of this folder."""

from calibrant.core.catalogue import Catalogue
from calibrant.measures._base import Measure

CATALOGUE = Catalogue("calibrant.measures", Measure, "measure")
