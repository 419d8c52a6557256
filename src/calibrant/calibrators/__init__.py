"""Repair a trained network: one file per calibrator; the file name is the name."""

from calibrant.calibrators._base import Calibrator
from calibrant.core.catalogue import Catalogue

CATALOGUE = Catalogue("calibrant.calibrators", Calibrator, "calibrator")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Calibrator", "find", "make", "names"]
