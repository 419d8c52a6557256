"""Calibrators, which repair a trained classifier: one file each; the file name is the name.

What the author of a calibrator needs is here: the base classes, and the steps that maps are made of.
"""

from typing import Any

from calibrant.calibrators._base import CATALOGUE, Calibrator
from calibrant.calibrators._scores import OfScores
from calibrant.core.maps.map import Fit, Map
from calibrant.core.maps.steps import Curves, Linear, LogProbs, Mix, Sigmoid, Step

make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = [
    "CATALOGUE",
    "Calibrator",
    "Curves",
    "Fit",
    "Linear",
    "LogProbs",
    "Map",
    "Mix",
    "OfScores",
    "Sigmoid",
    "Step",
    "find",
    "make",
    "names",
]


def __getattr__(name: str) -> Any:
    """The classes in the files, each loaded when it is first used."""
    return CATALOGUE.class_named(name)


def __dir__() -> list[str]:
    return [*__all__, *CATALOGUE.classes]
