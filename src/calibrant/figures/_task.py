"""What the axes are called: by the task of the predictions that a figure shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant.core.curves.curve import Curve
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.positive import positive_curve
from calibrant.core.predictions.row_data import Task
from calibrant.core.predictions.tasks import task_words
from calibrant.figures._base import Row


@dataclass(frozen=True, kw_only=True)
class FigureTerms:
    """How a figure speaks of scores, hits and the two sides of the diagonal."""

    score: str = "confidence"
    rate: str = "accuracy"
    outcome: str = "correct"
    miss: str = "incorrect"
    under: str = "underconfident"
    over: str = "overconfident"


OF_CLASSES = FigureTerms()
OF_POSITIVES = FigureTerms(
    score="P(positive)",
    rate="share of positives",
    outcome="positive",
    miss="negative",
    under="score too low",
    over="score too high",
)


def task_of(models: Mapping[str, Predictions]) -> Task:
    """The one task of all models; a figure with two would have two names for an axis."""
    tasks = {name: p.task for name, p in models.items()}
    first = next(iter(tasks.values()))
    for name, task in tasks.items():
        if task != first:
            got = f"{task_words(task)} of {name}"
            raise InputError("figure", expected=f"all {task_words(first)}", got=got, fix="draw them one by one")
    return first


def require_task(figure: str, models: Mapping[str, Predictions], allowed: Sequence[Task]) -> None:
    """Refuse what a figure cannot show."""
    task = task_of(models)
    if task not in allowed:
        expected = " or ".join(map(task_words, allowed))
        raise InputError(figure, expected=expected, got=task_words(task), fix="draw reliability instead")


def terms_for(rows: Sequence[Row]) -> FigureTerms:
    """The words for rows that say their task."""
    return OF_POSITIVES if rows[0]["task"] == "binary" else OF_CLASSES


def count_of(weight: float) -> int | float:
    """Rows, or their weight where they have shares."""
    return int(weight) if float(weight).is_integer() else float(weight)


def positive_curves(figure: str, models: Mapping[str, Predictions]) -> dict[str, Curve]:
    """P(positive) against being positive, of every model."""
    return {
        name: positive_curve(p, f"{figure} of {name}", instead="draw correctness_roc") for name, p in models.items()
    }
