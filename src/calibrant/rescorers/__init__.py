"""Another confidence from a network's inputs or features: one file a method; the file name is the name."""

from importlib import import_module
from typing import Any

from calibrant.core.catalogue import Catalogue
from calibrant.rescorers._base import Rescorer, TrainedRun, check_arrays, features_of, load_arrays, matrix, save_arrays
from calibrant.rescorers._clamp_options import ClampOptions

CATALOGUE = Catalogue("calibrant.rescorers", Rescorer, "rescorer")

OPENED = ("ClampedNetwork", "load_clamped")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = [
    "CATALOGUE",
    "ClampOptions",
    "Rescorer",
    "TrainedRun",
    "check_arrays",
    "features_of",
    "find",
    "load_arrays",
    "make",
    "matrix",
    "names",
    "save_arrays",
]


def __getattr__(name: str) -> Any:
    """The classes in the files, and what opens a clamped network, each loaded when it is first used."""
    if name in OPENED:
        return getattr(import_module("calibrant.rescorers._clamped_network"), name)
    return CATALOGUE.class_named(name)


def __dir__() -> list[str]:
    return [*__all__, *OPENED, *CATALOGUE.classes]
