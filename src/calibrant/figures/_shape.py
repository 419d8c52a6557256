"""What the axes are called: by the shape of the predictions that a figure shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant.core.curve import Curve
from calibrant.core.errors import InputError
from calibrant.core.extras import Shape
from calibrant.core.positive import positive_curve
from calibrant.core.predictions import Predictions
from calibrant.core.shapes import shape_words
from calibrant.figures._base import Row


@dataclass(frozen=True)
class Called:
    """How a figure speaks of scores, hits and the two sides of the diagonal."""

    score: str = "confidence"
    rate: str = "accuracy"
    hit: str = "correct"
    miss: str = "incorrect"
    under: str = "underconfident"
    over: str = "overconfident"


OF_CLASSES = Called()
OF_POSITIVES = Called("P(positive)", "share of positives", "positive", "negative", "score too low", "score too high")


def shape_of(models: Mapping[str, Predictions]) -> Shape:
    """The one shape of all models; a figure with two would have two names for an axis."""
    shapes = {name: p.shape for name, p in models.items()}
    first = next(iter(shapes.values()))
    for name, shape in shapes.items():
        if shape != first:
            got = f"{shape_words(shape)} of {name}"
            raise InputError("figure", expected=f"all {shape_words(first)}", got=got, fix="draw them one by one")
    return first


def require_shape(figure: str, models: Mapping[str, Predictions], allowed: Sequence[Shape]) -> None:
    """Refuse what a figure cannot show."""
    shape = shape_of(models)
    if shape not in allowed:
        expected = " or ".join(map(shape_words, allowed))
        raise InputError(figure, expected=expected, got=shape_words(shape), fix="draw reliability instead")


def called(rows: Sequence[Row]) -> Called:
    """The words for rows that say their shape."""
    return OF_POSITIVES if rows[0]["shape"] == "binary" else OF_CLASSES


def count_of(weight: float) -> int | float:
    """Rows, or their weight where they have shares."""
    return int(weight) if float(weight).is_integer() else float(weight)


def positive_curves(figure: str, models: Mapping[str, Predictions]) -> dict[str, Curve]:
    """P(positive) against being positive, of every model."""
    return {
        name: positive_curve(p, f"{figure} of {name}", instead="draw correctness_roc") for name, p in models.items()
    }
