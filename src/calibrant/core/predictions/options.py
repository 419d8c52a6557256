"""Options of the constructors of `Predictions`."""

from collections.abc import Sequence
from types import SimpleNamespace

import numpy.typing as npt

from calibrant.core.io.missing import MissingPolicy
from calibrant.core.predictions.row_data import Rows

Ignore = int | Sequence[int]


class ScoreOptions(Rows, total=False):
    """Options of scores of all classes."""

    mask: npt.ArrayLike | None  # True where a row has an option
    axis: int | None  # of the classes, in an array of more than two axes
    ignore: Ignore  # labels of rows to leave out
    classes: Sequence[str] | None  # names of the columns


class EventOptions(Rows, total=False):
    """Options of one score per row."""

    logits: bool  # the score is a logit
    ignore: Ignore  # labels of rows to leave out
    missing: MissingPolicy  # what is done with rows without a score


DEFAULTS = SimpleNamespace(ignore=(), logits=False, missing="error")
