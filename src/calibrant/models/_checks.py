"""Checks of options that several networks share."""

from collections.abc import Iterable

from calibrant.core.errors import InputError
from calibrant.models._base import Shape


def check_choice(what: str, value: int, choices: Iterable[int]) -> None:
    """Refuse a value that is not one of a few."""
    choices = sorted(choices)
    if value not in choices:
        near = min(choices, key=lambda choice: abs(choice - value))
        listed = ", ".join(map(str, choices))
        raise InputError(what, expected=f"one of {listed}", got=str(value), fix=f"did you mean {near}?")


def up_to(what: str, value: int, most: int) -> None:
    """Refuse sizes far above the largest network published: a mistyped number would fill memory."""
    if not 1 <= value <= most:
        raise InputError(what, expected=f"1 to {most:,}", got=str(value), fix="give a value in these bounds")


def share(what: str, value: float) -> None:
    """Refuse a dropout probability below 0, or of 1 and more."""
    if not 0 <= value < 1:
        raise InputError(what, expected="0 or more and below 1", got=f"{value:g}", fix="give for instance 0.3")


def image(what: str, shape: Shape, least: int) -> None:
    """Refuse images too small for the halvings of a network."""
    if shape.size < least:
        got = f"{shape.size} x {shape.size}"
        fix = "enlarge the images or take a network with fewer halvings"
        raise InputError(what, expected=f"images of at least {least} x {least} pixels", got=got, fix=fix)


def patches(what: str, shape: Shape, patch: int) -> int:
    """The number of patches of an image, or an error where they do not fit."""
    if shape.size % patch:
        whole = ", ".join(str(d) for d in range(1, shape.size + 1) if shape.size % d == 0)
        raise InputError(
            f"{what}:patch",
            expected=f"a divisor of the image size {shape.size} ({whole})",
            got=str(patch),
            fix="give another patch or resize the images",
        )
    return int((shape.size // patch) ** 2)
