"""Options of a catalogue's entries and values to try them with, read from the class: a new entry is tried at once."""

import dataclasses
from typing import Literal, get_args, get_origin, get_type_hints

from calibrant.core.errors import InputError

GUESSES = (2, 4, 9, 0.5, 0.1, 0.01)  # tried after twice the default, until the class takes one


def options_of(cls, without=()):
    """Name -> type of every option."""
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls) if field.name not in without}


def values_of(cls, option):
    """The default of an option, then every other word it takes, or one other number."""
    hint, default = _inside(get_type_hints(cls)[option]), getattr(cls(), option)
    if get_origin(hint) is Literal:
        return [default, *(word for word in get_args(hint) if word != default)]
    if hint is bool:
        return [default, not default]
    return [default, next(guess for guess in _guesses(hint, default) if _takes(cls, option, guess))]


def _inside(hint):
    """`float` of `float | None`."""
    inner = [part for part in get_args(hint) if part is not type(None)]
    return inner[0] if type(None) in get_args(hint) else hint


def _guesses(hint, default):
    doubled = [2 * default] if isinstance(default, int | float) else []
    return [hint(guess) for guess in (*doubled, *GUESSES) if hint(guess) != default]


def _takes(cls, option, value):
    try:
        cls(**{option: value})
    except InputError:
        return False
    return True
