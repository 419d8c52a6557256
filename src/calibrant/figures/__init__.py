"""Figures: one file each; the file name is the name. Numbers, then a sentence, then the chart.

>>> from calibrant.core.predictions import Predictions
>>> p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], labels=[0, 1])
>>> figure = make("reliability:bins=2")
>>> rows = figure.data({"demo": p})
>>> rows[0]["confidence"], rows[0]["accuracy"]
(0.75, 0.5)
"""

from typing import Any

from calibrant.core.catalogue import Catalogue
from calibrant.figures._base import Figure, PredictionFigure, Row, TableFigure

CATALOGUE = Catalogue("calibrant.figures", Figure, "figure")
make, names, find = CATALOGUE.make, CATALOGUE.names, CATALOGUE.find

__all__ = ["CATALOGUE", "Figure", "PredictionFigure", "Row", "TableFigure", "find", "make", "names"]


def __getattr__(name: str) -> Any:
    """The classes in the files, each loaded when it is first used."""
    return CATALOGUE.class_named(name)


def __dir__() -> list[str]:
    return [*__all__, *CATALOGUE.classes]
