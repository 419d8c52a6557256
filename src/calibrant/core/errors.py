"""Errors a user can act on: what was expected, what came, what to do."""

import re
from collections.abc import Iterable

MOST_CHARACTERS = 1000  # of one part of a sentence: names come from files, and files may hold anything
# What steers a terminal, ends a line, turns the direction of reading, or is no character at all.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def visible(text: str) -> str:
    r"""A name as one line that any terminal, page or figure can show: what cannot be seen is written as an escape.

    >>> visible("a\x1b[2J\n")
    'a\\x1b[2J\\n'
    """
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class InputError(ValueError):
    """Bad input. The command line prints it without a traceback and exits with 2.

    >>> print(InputError("labels", expected="integers in 0..9", got="12 in row 7", fix="count classes from 0"))
    labels: expected integers in 0..9, got 12 in row 7. To fix it: count classes from 0.
    """

    def __init__(self, what: str, *, expected: str, got: str, fix: str) -> None:
        self.what = what  # a reader of files looks up its line by it
        what, expected, got, fix = (_short(visible(part)) for part in (what, expected, got, fix))
        self.problem = f"{what}: expected {expected}, got {got}"  # without what to do
        super().__init__(f"{self.problem}. To fix it: {fix}{'' if fix.endswith('?') else '.'}")

    @staticmethod
    def inside(place: str, error: "InputError") -> "InputError":
        """The same error with the place it happened in, for instance a file name, in front."""
        return _with_text(f"{_short(visible(place))}: {error}", error)

    @staticmethod
    def with_name(error: "InputError", old: str, new: str) -> "InputError":
        """The same error with another name in its text, for instance that of the file that a copy was made from."""
        return _with_text(str(error).replace(visible(old), visible(new)), error)


class DamagedFileError(InputError):
    """A file that cannot be read, whatever its columns are called: it is damaged or empty."""

    @classmethod
    def from_reason(cls, file: object, expected: str, reason: object, fix: str) -> "DamagedFileError":
        """The error with the first line of the reason, which may be an exception of the library that read the file."""
        reason = (str(reason).strip() or type(reason).__name__).splitlines()[0][:200]
        return cls(str(file), expected=expected, got=f"a damaged one ({reason})", fix=fix)


class UndefinedMeasureError(InputError):
    """A measure does not exist on these rows: no number would be true of them."""


class LeakWarning(UserWarning):
    """Numbers on rows that a map was fitted on are optimistic."""


class ProbabilitiesAsLogitsWarning(UserWarning):
    """Scores given as logits are probabilities by all appearances."""


class ReversedScoresWarning(UserWarning):
    """Positive rows have significantly lower scores than negative ones."""


def unknown_name(
    kind: str, name: str, known: Iterable[str], expected: str = "", *, fix: str = "", cutoff: float = 0.6
) -> InputError:
    """The error for an unknown name, with the known one that is spelt most like it, or with a `fix` that knows better.

    `expected` replaces the list of all names; from `cutoff` on, out of 1, two names are alike.

    >>> print(unknown_name("measure", "eec", ["ece", "mce"]))
    measure: expected one of ece, mce, got 'eec'. To fix it: did you mean 'ece'?
    >>> print(unknown_name("measure", "MCE", ["ece", "mce"]))
    measure: expected one of ece, mce, got 'MCE'. To fix it: did you mean 'mce'?
    """
    from difflib import get_close_matches

    names = sorted(known)
    lower = {known_name.lower(): known_name for known_name in reversed(names)}
    swapped = [match for match in lower if sorted(match) == sorted(name.lower())]  # its letters in another order
    near = [lower[match] for match in swapped or get_close_matches(name.lower(), lower, n=1, cutoff=cutoff)]
    return InputError(
        kind,
        expected=expected or f"one of {', '.join(names)}",
        got=f"'{name}'",
        fix=fix or (f"did you mean '{near[0]}'?" if near else "pick one of these names"),
    )


def _with_text(text: str, error: InputError) -> InputError:
    """An error of the same class with another text."""
    other = type(error).__new__(type(error))
    other.what, other.problem = error.what, error.problem
    ValueError.__init__(other, text)
    return other


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
