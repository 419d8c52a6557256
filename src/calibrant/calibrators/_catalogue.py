"""The catalogue of calibrators: the files of this folder."""

from calibrant.calibrators._base import Calibrator
from calibrant.core.catalogue import Catalogue

CATALOGUE = Catalogue("calibrant.calibrators", Calibrator, "calibrator")
