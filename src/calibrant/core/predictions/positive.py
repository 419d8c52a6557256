"""The curve of P(positive) of binary predictions, or of two classes, of which class 1 is positive."""

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.weighted import sort_curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.text.vocabulary import describe_task


def has_positive(p: Predictions) -> bool:
    return p.task == "binary" or (p.task == "multiclass" and p.k == 2)


def positive_curve(p: Predictions, where: str, *, instead: str) -> Curve:
    """The sorted curve; an error from `where` that suggests `instead` for other tasks.

    >>> positive_curve(Predictions.binary([0.9, 0.2], [0, 1]), "demo", instead="nothing").scores
    array([0.2, 0.9])
    """
    if not has_positive(p):
        raise InputError(
            where,
            expected="scores of the positive class, or of two classes",
            got=f"{p.k} classes" if p.task == "multiclass" else describe_task(p.task),
            fix=f"{instead}: how well confidence tells right predictions from wrong ones",
        )
    if p.task == "binary":
        return p.curve
    return sort_curve(p.probs[:, 1].astype(np.float64), (p.labels == 1).astype(np.float64), p.weights)
