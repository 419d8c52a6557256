"""Losses that train calibrated networks: one file each; the file name is the name. Plain torch modules."""

from calibrant.losses._base import Loss, RowLoss, Term
from calibrant.losses._make import CATALOGUE, make

names, find = CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Loss", "RowLoss", "Term", "find", "make", "names"]
