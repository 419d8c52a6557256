"""Measures as functions on arrays, with the arguments in the order of scikit-learn: `ece(y_true, y_prob)`."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from calibrant.core.config.convert import fields_of
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.validation import to_numpy
from calibrant.measures import CATALOGUE, Measure

RENAMED = {"bins": "n_bins"}  # options with another name in scikit-learn

ONE_COLUMN = "[0, 1, 1, 0, 1, 0], [0.2, 0.9, 0.4, 0.6, 0.7, 0.3]"
THREE_COLUMNS = "[0, 1, 1], [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.5, 0.3, 0.2]]"
DOCSTRING = """{summary}

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The class of each row, counted from 0; with one column of scores 0 and 1, or any two values with `pos_label`.
    y_prob : array-like of shape (n,) or (n, k)
        P(positive), or a column of probabilities for each class.
{options}    sample_weight : array-like of shape (n,), optional
        The weight of each row.
    pos_label : object, optional
        The positive value of `y_true`, with one column of scores.
    logits : bool, default False
        Whether `y_prob` holds logits instead of probabilities.

    Returns
    -------
    float
        {title}, the value of `calibrant.measure(p, "{name}")`, which has an interval too.

    Examples
    --------
    >>> from calibrant import metrics
    >>> value = metrics.{name}({example})
    """


def make_function(name: str) -> Callable[..., float]:
    """The function of one measure, with its options as keywords.

    >>> make_function("ece")([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.4], n_bins=2)
    0.275
    """
    cls = CATALOGUE.find(name)
    options = {RENAMED.get(key, key): field for key, (field, _) in fields_of(cls).items()}

    def function(
        y_true: npt.ArrayLike,
        y_prob: npt.ArrayLike,
        *,
        sample_weight: npt.ArrayLike | None = None,
        pos_label: Any = None,
        logits: bool = False,
        **given: Any,
    ) -> float:
        for key in given.keys() - options:
            keywords = [*options, "sample_weight", "pos_label", "logits"]
            raise unknown_name(f"keyword of metrics.{name}", key, keywords)
        chosen = cls(**{options[key]: value for key, value in given.items()})
        p = read_arrays(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, logits=logits)
        chosen.check_shape(p)
        return chosen(p)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "calibrant.metrics"
    function.__doc__ = describe(name, cls)
    function.__dict__["__signature__"] = signature(cls)
    return function


def read_arrays(
    y_true: npt.ArrayLike, y_prob: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None, pos_label: Any, logits: bool
) -> Predictions:
    """Predictions of labels and scores: of one column P(positive), of several the probabilities of all classes."""
    scores = to_numpy("y_prob", y_prob)
    if scores.ndim <= 1 or scores.shape[1:] == (1,):
        return Predictions.binary(scores.reshape(-1), y_true, positive=pos_label, logits=logits, weights=sample_weight)
    if pos_label is not None:
        got, fix = f"shape {scores.shape}", "give the column of pos_label alone, for instance y_prob[:, 1]"
        raise InputError("pos_label", expected="one column of scores", got=got, fix=fix)
    build = Predictions.from_logits if logits else Predictions.from_probs
    return build(scores, y_true, weights=sample_weight)


def signature(cls: type[Measure]) -> inspect.Signature:
    """The signature of the function of a measure, for `help` and for editors; annotations are text."""
    both, only = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    defaults = cls()
    parameters = [inspect.Parameter(name, both, annotation="ArrayLike") for name in ("y_true", "y_prob")]
    for key, (field, hint) in fields_of(cls).items():
        text = inspect.formatannotation(hint).replace("typing.", "")
        parameters.append(
            inspect.Parameter(RENAMED.get(key, key), only, default=getattr(defaults, field), annotation=text)
        )
    parameters += [
        inspect.Parameter("sample_weight", only, default=None, annotation="ArrayLike | None"),
        inspect.Parameter("pos_label", only, default=None, annotation="object"),
        inspect.Parameter("logits", only, default=False, annotation="bool"),
    ]
    return inspect.Signature(parameters, return_annotation="float")


def describe(name: str, cls: type[Measure]) -> str:
    """The docstring of the function of a measure."""
    options = list(signature(cls).parameters.values())[2:-3]
    lines = "".join(f"    {p.name} : {p.annotation}, default {p.default!r}\n" for p in options)
    summary = inspect.cleandoc(cls.__doc__ or cls.title).partition("\n")[0]
    example = ONE_COLUMN if "binary" in cls.tasks else THREE_COLUMNS
    return DOCSTRING.format(summary=summary, options=lines, title=cls.title, name=name, example=example)
