"""Measures of calibration and refinement: one file each; the file name is the name."""

from typing import Any

from calibrant.core.catalogue import Catalogue
from calibrant.measures._base import (
    UNDEFINED,
    ZERO_RATIO,
    BinnedMeasure,
    BinOptions,
    ClassMeasure,
    CurveMeasure,
    Direction,
    Measure,
    OfCurve,
    RankingMeasure,
    RatioMeasure,
    RowMeasure,
    Streams,
    Unit,
    check_predictions,
    ratio_noise,
)
from calibrant.measures._positive import PositiveMeasure

CATALOGUE = Catalogue("calibrant.measures", Measure, "measure")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = [
    "CATALOGUE",
    "UNDEFINED",
    "ZERO_RATIO",
    "BinOptions",
    "BinnedMeasure",
    "ClassMeasure",
    "CurveMeasure",
    "Direction",
    "Measure",
    "OfCurve",
    "PositiveMeasure",
    "RankingMeasure",
    "RatioMeasure",
    "RowMeasure",
    "Streams",
    "Unit",
    "check_predictions",
    "find",
    "make",
    "names",
    "ratio_noise",
]


def __getattr__(name: str) -> Any:
    """The classes in the files, each loaded when it is first used."""
    return CATALOGUE.class_named(name)


def __dir__() -> list[str]:
    return [*__all__, *CATALOGUE.classes]
