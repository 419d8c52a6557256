"""The catalogue of figures: the files of this folder."""

from calibrant.core.catalogue import Catalogue
from calibrant.figures._base import Figure

CATALOGUE = Catalogue("calibrant.figures", Figure, "figure")
