"""Rows that came without a score: how many, and what was done about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal

from calibrant.core import wording
from calibrant.core.errors import InputError, unknown_name

How = Literal["refuse", "drop", "wrong"]
HOWS: tuple[How, ...] = ("refuse", "drop", "wrong")
SAID = {"drop": "were left out", "wrong": "count as wrong, with confidence 0"}


@dataclass(frozen=True)
class Missing:
    """So many rows of so many had no score.

    >>> print(Missing(2, of=8, how="drop", what="confidence"))
    2 of 8 rows (25.0 %) have no confidence and were left out.
    """

    rows: int
    of: int
    how: How
    what: str = "score"

    @property
    def share(self) -> float:
        return self.rows / self.of

    def __str__(self) -> str:
        have = "has" if self.rows == 1 else "have"
        said = SAID[self.how].replace("were", "was").replace("count", "counts") if self.rows == 1 else SAID[self.how]
        share = wording.percent(self.share)
        return f"{self.rows:,} of {self.of:,} rows ({share}) {have} no {self.what} and {said}."

    def __add__(self, other: "Missing") -> "Missing":
        """Of two parts of one file."""
        return Missing(self.rows + other.rows, self.of + other.of, self.how, self.what)

    def to_dict(self) -> dict[str, object]:
        return {"rows": self.rows, "of": self.of, "share": self.share, "how": self.how}


def together(parts: Sequence[Missing]) -> Missing | None:
    """Of all parts of one file; None where no row lacks anything."""
    whole = reduce(add, parts) if parts else None
    return whole if whole is not None and whole.rows else None


def check_how(how: str) -> How:
    found = next((known for known in HOWS if known == how), None)
    if found is None:
        raise unknown_name("missing", how, HOWS)
    return found


def settle(where: str, what: str, rows: int, of: int, how: How) -> Missing | None:
    """What is done with rows that have no score, or the error that says what could be."""
    if rows == 0:
        return None
    if how == "refuse":
        fix = "say missing='drop' (--missing drop) to leave these rows out"
        if what == "confidence":
            fix += ", or 'wrong' to count them as wrong with confidence 0"
        got = f"none in {rows:,} of {of:,} rows ({wording.percent(rows / of)})"
        raise InputError(where, expected=f"a {what} in every row", got=got, fix=fix)
    if how == "wrong" and what != "confidence":
        raise InputError(
            where,
            expected="confidences, of which a missing one can count as wrong",
            got=f"a {what}",
            fix="use missing='drop' (--missing drop)",
        )
    if how == "drop" and rows == of:
        raise InputError(where, expected=f"a {what}", got=f"none in any of {of:,} rows", fix="name another column")
    return Missing(rows, of, how, what)
