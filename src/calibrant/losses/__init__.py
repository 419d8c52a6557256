"""Losses that train calibrated networks: one file each; the file name is the name. Plain torch modules."""

from typing import Any

from calibrant.losses._base import Loss, RowLoss, Term
from calibrant.losses._make import CATALOGUE, make

names, find = CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Loss", "RowLoss", "Term", "find", "make", "names"]


def __getattr__(name: str) -> Any:
    """The classes in the files, each loaded when it is first used."""
    return CATALOGUE.class_named(name)


def __dir__() -> list[str]:
    return [*__all__, *CATALOGUE.classes]
