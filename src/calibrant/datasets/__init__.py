"""Images and labels: one file a data set; the file name is the name (`cifar10.1` is cifar10_1.py)."""

from calibrant.datasets._base import Dataset, Part
from calibrant.datasets._cache import progress_to
from calibrant.datasets._make import CATALOGUE, make
from calibrant.datasets._splits import Splits, split

names, find = CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Dataset", "Part", "Splits", "find", "make", "names", "progress_to", "split"]
