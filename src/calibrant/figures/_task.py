"""The task of the predictions that a figure shows, and the words for it."""

from collections.abc import Mapping, Sequence

from calibrant.core.curves.curve import Curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.positive import positive_curve
from calibrant.core.predictions.row_data import Task
from calibrant.core.text.vocabulary import Vocabulary, describe_task, vocabulary_of
from calibrant.figures._base import Row


def task_of(models: Mapping[str, Predictions]) -> Task:
    """The one task of all models; a figure with two would have two names for an axis."""
    tasks = {name: p.task for name, p in models.items()}
    first = next(iter(tasks.values()))
    for name, task in tasks.items():
        if task != first:
            got = f"{describe_task(task)} of {name}"
            raise InputError("figure", expected=f"all {describe_task(first)}", got=got, fix="draw them one by one")
    return first


def require_task(figure: str, models: Mapping[str, Predictions], allowed: Sequence[Task]) -> None:
    """Refuse predictions of a task that the figure cannot show."""
    task = task_of(models)
    if task not in allowed:
        expected = " or ".join(map(describe_task, allowed))
        raise InputError(figure, expected=expected, got=describe_task(task), fix="draw reliability instead")


def terms_for(rows: Sequence[Row]) -> Vocabulary:
    """The vocabulary for the task of these rows."""
    return vocabulary_of(rows[0]["task"])


def count_of(weight: float) -> int | float:
    """The number of rows, or their weight where weights are shares."""
    return int(weight) if float(weight).is_integer() else float(weight)


def positive_curves(figure: str, models: Mapping[str, Predictions]) -> dict[str, Curve]:
    """The curve of P(positive) against being positive, of every model."""
    return {
        name: positive_curve(p, f"{figure} of {name}", instead="draw correctness_roc") for name, p in models.items()
    }
