"""P(positive) against being positive: of binary predictions, or of two classes, of which class 1 is positive."""

import numpy as np

from calibrant.core.curve import Curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.shapes import shape_words
from calibrant.core.weighted import sort_curve


def has_positive(p: Predictions) -> bool:
    return p.shape == "binary" or (p.shape == "classes" and p.k == 2)


def positive_curve(p: Predictions, where: str, *, instead: str) -> Curve:
    """The sorted curve, or why there is none; `where` asks for it, and `instead` says what to ask for then.

    >>> positive_curve(Predictions.binary([0.9, 0.2], [0, 1]), "demo", instead="nothing").scores
    array([0.2, 0.9])
    """
    if not has_positive(p):
        raise InputError(
            where,
            expected="scores of the positive class, or of two classes",
            got=f"{p.k} classes" if p.shape == "classes" else shape_words(p.shape),
            fix=f"{instead}: how well confidence tells right predictions from wrong ones",
        )
    if p.shape == "binary":
        return p.curve
    return sort_curve(p.probs[:, 1].astype(np.float64), (p.labels == 1).astype(np.float64), p.weights)
