"""Train a network and get its predictions: a recipe, a loop to read from top to bottom, files at the end."""

from calibrant.train.loop import Progress, train
from calibrant.train.predict import predict
from calibrant.train.recipe import Recipe, read_recipe
from calibrant.train.run import Run, open_run

__all__ = ["Progress", "Recipe", "Run", "open_run", "predict", "read_recipe", "train"]
