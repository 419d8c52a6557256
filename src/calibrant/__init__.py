"""calibrant: measure, repair, train and study how well a classifier's confidence matches its accuracy.

>>> import calibrant as cal
>>> p = cal.Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
>>> cal.measure(p, "ece:bins=2", resamples=0).value
0.25
"""

from contextlib import suppress
from typing import Any

import lazy_loader

__version__ = "0.1.0"

# The public names are those of __init__.pyi: each is loaded when it is first used, so that `import calibrant` is light.
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a public name; the error for another one says where people find it."""
    if name in __all__ or name.startswith("_"):
        return _load(name)
    raise AttributeError(f"module 'calibrant' has no attribute '{name}'{_find_place(name)}", name=name)


def _find_place(name: str) -> str:
    """Where the thing is that other packages have under this name at the top: a measure, or a class of a catalogue."""
    from difflib import get_close_matches
    from importlib import import_module

    from calibrant.measures import CATALOGUE

    rooms = (
        "types",
        "training",
        "measures",
        "calibrators",
        "losses",
        "rescorers",
        "models",
        "datasets",
        "corruptions",
        "figures",
    )
    for room in rooms if name[0].isupper() else ():
        with suppress(ImportError, AttributeError):  # torch may be missing
            getattr(import_module(f"calibrant.{room}"), name)
            return f": it is calibrant.{room}.{name}"
    near = get_close_matches(name, __all__, n=1, cutoff=0.8)
    for measure in [name] if name in CATALOGUE.names() else [] if near else CATALOGUE.called_elsewhere(name):
        return f": on arrays it is calibrant.metrics.{measure}, with an interval calibrant.measure(p, '{measure}')"
    return f": did you mean '{near[0]}'?" if near else ""
