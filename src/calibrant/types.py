"""Types of results, for annotations: what the functions of calibrant return."""

import sys
from typing import Any

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub("calibrant", __file__)


def __getattr__(name: str) -> Any:
    """Load a type when it is first used."""
    loaded = _load(name)
    vars(sys.modules["calibrant"]).pop(name, None)  # lazy_loader leaves it there, but it is a name of this module
    return loaded
