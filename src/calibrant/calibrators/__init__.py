"""Repair a trained network: one file a calibrator; the file name is the name."""

from calibrant.calibrators._auto import Choice, choose
from calibrant.calibrators._base import Calibrator
from calibrant.calibrators._catalogue import CATALOGUE
from calibrant.calibrators._fit import fit
from calibrant.calibrators._map import Fit, Map, load_map

make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Calibrator", "Choice", "Fit", "Map", "choose", "find", "fit", "load_map", "make", "names"]
