"""Rows without a score: how many there are, and what is done with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.text import number_format as fmt

MissingPolicy = Literal["error", "drop", "count_as_wrong"]
POLICIES: tuple[MissingPolicy, ...] = ("error", "drop", "count_as_wrong")


@dataclass(frozen=True)
class MissingCount:
    """The number of rows without a score among all rows, and the policy that was applied to them.

    >>> print(MissingCount(2, of=8, policy="drop", what="confidence"))
    2 of 8 rows (25.0 %) have no confidence and were left out.
    """

    rows: int
    of: int
    policy: MissingPolicy
    what: str = "score"

    @property
    def share(self) -> float:
        return self.rows / self.of

    def __str__(self) -> str:
        single = self.rows == 1
        if self.policy == "drop":
            outcome = "was left out" if single else "were left out"
        else:
            outcome = f"{'counts' if single else 'count'} as wrong, with confidence 0"
        share = fmt.percent(self.share)
        return (
            f"{self.rows:,} of {self.of:,} rows ({share}) {'has' if single else 'have'} no {self.what} and {outcome}."
        )

    def __add__(self, other: "MissingCount") -> "MissingCount":
        """The counts of two parts of one file."""
        return MissingCount(self.rows + other.rows, self.of + other.of, self.policy, self.what)

    def to_dict(self) -> dict[str, object]:
        return {"rows": self.rows, "of": self.of, "share": self.share, "policy": self.policy}


def total_missing(parts: Sequence[MissingCount]) -> MissingCount | None:
    """The sum over all parts of a file; None where every row has a score."""
    total = reduce(add, parts) if parts else None
    return total if total is not None and total.rows else None


def check_policy(policy: str) -> MissingPolicy:
    for known in POLICIES:
        if known == policy:
            return known
    raise unknown_name("missing", policy, POLICIES)


def apply_policy(where: str, what: str, rows: int, of: int, policy: MissingPolicy) -> MissingCount | None:
    """The record of rows without a score, or the error that the policy asks for; None where there are no such rows."""
    if rows == 0:
        return None
    if policy == "error":
        fix = "use missing='drop' (--missing drop) to leave these rows out"
        if what == "confidence":
            fix += ", or 'count_as_wrong' to count them as wrong with confidence 0"
        got = f"none in {rows:,} of {of:,} rows ({fmt.percent(rows / of)})"
        raise InputError(where, expected=f"a {what} in every row", got=got, fix=fix)
    if policy == "count_as_wrong" and what != "confidence":
        raise InputError(
            where,
            expected="confidences, of which a missing one can count as wrong",
            got=f"a {what}",
            fix="use missing='drop' (--missing drop)",
        )
    if policy == "drop" and rows == of:
        raise InputError(where, expected=f"a {what}", got=f"none in any of {of:,} rows", fix="name another column")
    return MissingCount(rows, of, policy, what)
