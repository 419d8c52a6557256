"""Train a network and get its predictions: a recipe, a loop to read from top to bottom, files at the end.

The room can be called: `calibrant.train(recipe, out)` is the function people type first.
"""

import sys
from types import ModuleType

from calibrant.train.learned import GammaNet, Learned, Smoothing, UnitL2
from calibrant.train.loop import Progress, train
from calibrant.train.meta import MetaStep
from calibrant.train.predict import predict
from calibrant.train.recipe import Recipe, read_recipe
from calibrant.train.run import Run, open_run

__all__ = [
    "GammaNet",
    "Learned",
    "MetaStep",
    "Progress",
    "Recipe",
    "Run",
    "Smoothing",
    "UnitL2",
    "open_run",
    "predict",
    "read_recipe",
    "train",
]


class _Room(ModuleType):
    __call__ = staticmethod(train)


sys.modules[__name__].__class__ = _Room
