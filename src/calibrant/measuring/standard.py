"""The standard measures, by task: what is measured where no measure is named."""

from calibrant.core.predictions import Predictions
from calibrant.measures import CATALOGUE

STANDARD = (
    "accuracy",
    "nll",
    "brier",
    "gap",
    "ece",
    "ece:scheme=mass",
    "classwise",
    "mce",
    "ks",
    "smooth",
    "auroc_correct",
    "aupr_error",
    "aurc",
)
STANDARD_BINARY = (
    "accuracy",
    "nll",
    "brier",
    "gap",
    "ece",
    "ece:scheme=mass",
    "mce",
    "ks",
    "smooth",
    "slope",
    "intercept",
    "ici",
    "atb",
    "roc_auc",
    "average_precision",
)


def standard(p: Predictions) -> tuple[str, ...]:
    """The standard measures of predictions of this task.

    >>> standard(Predictions.binary([0.9, 0.2], [1, 0]))[-2:]
    ('roc_auc', 'average_precision')
    """
    if p.task == "binary":
        return STANDARD_BINARY
    return tuple(spec for spec in STANDARD if p.task in CATALOGUE.make(spec).tasks)
