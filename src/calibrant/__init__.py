"""calibrant: measure, repair, train and study the honesty of a classifier's confidence.

>>> import calibrant as cal
>>> p = cal.Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
>>> cal.measure(p, "ece:bins=2", resamples=0).value
0.25
"""

import importlib
from typing import Any

from calibrant import calibrators, measures
from calibrant.calibrators import Map, choose, fit, load_map
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.predictions import Predictions
from calibrant.measures import Measurement, measure, measure_all
from calibrant.measures._accumulator import Accumulator
from calibrant.measures._check import check
from calibrant.measures._compare import compare
from calibrant.measures._consistency import consistency
from calibrant.measures._decompose import decompose
from calibrant.measures._sets import benchmark102

__version__ = "0.1.0"

__all__ = [
    "Accumulator",
    "InputError",
    "LeakWarning",
    "Map",
    "Measurement",
    "Predictions",
    "benchmark102",
    "calibrators",
    "check",
    "choose",
    "compare",
    "consistency",
    "decompose",
    "fit",
    "load_map",
    "measure",
    "measure_all",
    "measures",
]

LATER = ("losses", "models", "datasets", "corruptions", "figures", "report", "train", "network")


def __getattr__(name: str) -> Any:
    """Rooms that need torch or Altair are loaded when they are asked for."""
    if name in LATER:
        return importlib.import_module(f"calibrant.{name}")
    raise AttributeError(f"module 'calibrant' has no attribute '{name}'")
