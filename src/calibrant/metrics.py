"""Measures as functions on arrays, one for each measure, with the arguments in the order of scikit-learn.

>>> from calibrant import metrics
>>> metrics.ece([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.4], n_bins=2)
0.275
>>> metrics.accuracy([0, 1], [[0.8, 0.2], [0.4, 0.6]])
1.0
"""

from collections.abc import Callable

from calibrant.measures import CATALOGUE
from calibrant.measuring.array_functions import make_function


def __getattr__(name: str) -> Callable[..., float]:
    """The function of a measure, made when it is first used."""
    if name.startswith("_"):
        raise AttributeError(f"module 'calibrant.metrics' has no attribute '{name}'")
    if name not in CATALOGUE.names():
        raise AttributeError(f"calibrant.metrics: {CATALOGUE.unknown(name)}")
    return globals().setdefault(name, make_function(name))


def __dir__() -> list[str]:
    return CATALOGUE.names()
