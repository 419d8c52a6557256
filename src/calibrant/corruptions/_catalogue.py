"""The catalogue of corruptions: the files of this folder."""

from calibrant.core.catalogue import Catalogue
from calibrant.corruptions._base import Corruption

CATALOGUE = Catalogue("calibrant.corruptions", Corruption, "corruption")
