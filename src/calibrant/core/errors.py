"""Errors a user can act on: what was expected, what came, what to do."""

from collections.abc import Iterable


class InputError(ValueError):
    """Bad input. The command line prints it without a traceback and exits with 2.

    >>> print(InputError("labels", expected="integers in 0..9", got="12 in row 7", fix="count classes from 0"))
    labels: expected integers in 0..9, got 12 in row 7. To fix it: count classes from 0.
    """

    def __init__(self, what: str, *, expected: str, got: str, fix: str) -> None:
        super().__init__(f"{what}: expected {expected}, got {got}. To fix it: {fix}{'' if fix.endswith('?') else '.'}")

    @classmethod
    def inside(cls, place: str, error: "InputError") -> "InputError":
        """The same error with the place it happened in, for instance a file name, in front."""
        made = cls.__new__(cls)
        ValueError.__init__(made, f"{place}: {error}")
        return made


class LeakWarning(UserWarning):
    """Numbers on rows that a map was fitted on flatter it."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a name nobody knows, with the nearest known one.

    >>> print(unknown_name("measure", "eec", ["ece", "mce"]))
    measure: expected one of ece, mce, got 'eec'. To fix it: did you mean 'ece'?
    """
    from difflib import get_close_matches

    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    return InputError(
        kind,
        expected=f"one of {', '.join(names)}",
        got=f"'{name}'",
        fix=f"did you mean '{near[0]}'?" if near else "pick one of these names",
    )
