"""Train a network and get its predictions: a recipe, a loop to read from top to bottom, files at the end."""

from calibrant.training import recipe

__all__ = ["recipe"]
