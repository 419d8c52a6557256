"""Meanings of the numbers of a report, for readers who never saw them."""

from calibrant.measures import make


def meaning(spec: str, task: str) -> str:
    """What a number means, in plain words; measures say it themselves.

    >>> meaning("accuracy", "multiclass")
    'How often the prediction is right.'
    """
    return make(spec).explain(task)
