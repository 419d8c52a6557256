"""Base classes of measures: any number, or one of rows, of the curve, of its bins or of every class."""

from calibrant.measures._measure import UNDEFINED, Direction, Measure, Streams, Unit, check_predictions
from calibrant.measures._of_bins import BinnedMeasure, BinOptions
from calibrant.measures._of_classes import ClassMeasure
from calibrant.measures._of_curve import CurveMeasure, OfCurve, RankingMeasure
from calibrant.measures._of_rows import ROBUST, ZERO_RATIO, RatioMeasure, RowMeasure, ratio_noise

__all__ = [
    "ROBUST",
    "UNDEFINED",
    "ZERO_RATIO",
    "BinOptions",
    "BinnedMeasure",
    "ClassMeasure",
    "CurveMeasure",
    "Direction",
    "Measure",
    "OfCurve",
    "RankingMeasure",
    "RatioMeasure",
    "RowMeasure",
    "Streams",
    "Unit",
    "check_predictions",
    "ratio_noise",
]
