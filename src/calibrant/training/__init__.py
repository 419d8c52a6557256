"""Train a network and get its predictions: a recipe, a loop to read from top to bottom, files at the end."""

import lazy_loader

# Parts of a training for a loop of your own, each loaded when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
