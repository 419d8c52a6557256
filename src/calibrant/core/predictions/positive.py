"""The curve of P(positive) of binary predictions, or of two classes, of which class 1 is positive."""

import numpy as np

from calibrant.core.curves.curve import Curve
from calibrant.core.curves.keys import keys_of, log_odds_of_classes
from calibrant.core.curves.weighted import sort_curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.text.vocabulary import describe_task


def has_positive(p: Predictions) -> bool:
    return p.task == "binary" or (p.task == "multiclass" and p.k == 2)


def positive_curve(p: Predictions, where: str, *, instead: str) -> Curve:
    """The sorted curve, ready for ranking; an error from `where` that suggests `instead` for other tasks.

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
        return p.ranking
    scores, positive = p.probs[:, 1].astype(np.float64), p.labels == 1
    if p.score_type == "probs":
        return sort_curve(scores, positive.astype(np.float64), p.weights)
    ones = np.ones(p.n, dtype=np.int64)
    keys = keys_of(scores, lambda rows: log_odds_of_classes(p.values, ones, rows))
    return sort_curve(keys, positive, p.weights).read_keys()
