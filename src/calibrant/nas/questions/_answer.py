"""Answers: a sentence, claims with verdicts, numbers with intervals, pictures."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

Verdict = Literal["agrees", "differs", "inconclusive"]
Kind = Literal["tau", "share", "factor"]

# How exactly a published number can be read off its figure, and above which width an interval does not tell.
SLACK: dict[Kind, float] = {"tau": 0.01, "share": 0.002, "factor": 0.1}
WIDE: dict[Kind, float] = {"tau": 0.5, "share": 0.03, "factor": 2.0}


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number of an answer, with its interval and, where there is one, the published number.

    An interval that holds the published number agrees with it, unless it is so wide that it would agree with any.

    >>> Number(name="tau", where="cifar10", networks=200, value=0.4, low=0.3, high=0.5, published=0.36).verdict
    'agrees'
    """

    name: str
    where: str  # data set and population
    networks: int
    value: float | None
    low: float | None = None
    high: float | None = None
    kind: Kind = "tau"
    published: float | None = None

    @property
    def verdict(self) -> Verdict | None:
        if self.published is None:
            return None
        if self.low is None or self.high is None:
            return "inconclusive"
        slack = SLACK[self.kind]
        if not self.low - slack <= self.published <= self.high + slack:
            return "differs"
        return "agrees" if self.high - self.low <= WIDE[self.kind] else "inconclusive"


@dataclass(frozen=True)
class Claim:
    """A published statement, and whether these networks agree with it."""

    says: str
    verdict: Verdict
    because: str
    main: bool = True  # the answer stands and falls with it


@dataclass(frozen=True)
class Picture:
    """A figure of the catalogue, and the table it is drawn from."""

    title: str
    figure: str
    table: "pl.DataFrame"
    words: str = ""  # in the place of the figure's own


@dataclass(frozen=True)
class Population:
    """The number of networks that a question was asked of."""

    space: str
    data: str
    networks: int
    unique: int
    constant: int  # of the unique ones


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a table to a question. It may say that the data do not tell."""

    question: str
    sentence: str
    published: str
    claims: tuple[Claim, ...]
    numbers: tuple[Number, ...]
    pictures: tuple[Picture, ...]
    populations: tuple[Population, ...]
    note: str

    @property
    def verdict(self) -> Verdict:
        """The joint verdict: agrees with the published answer only if every main claim holds."""
        verdicts = {claim.verdict for claim in self.claims if claim.main}
        return "differs" if "differs" in verdicts else "agrees" if verdicts == {"agrees"} else "inconclusive"


def format_value(n: Number) -> str:
    """Format the value and its interval.

    >>> format_value(Number(name="tau", where="cifar10", networks=50, value=0.4, low=0.31, high=0.5))
    '0.40 (0.31 to 0.50)'
    >>> format_value(Number(name="ECE", where="", networks=50, value=0.042, kind="share"))
    '4.2 %'
    """
    if n.value is None:
        return "undefined"
    scale, unit = (100, " %") if n.kind == "share" else (1, "")
    digits = 1 if n.kind == "share" else 2
    value = f"{scale * n.value:.{digits}f}{unit}"
    if n.low is None or n.high is None:
        return value
    return f"{value} ({scale * n.low:.{digits}f} to {scale * n.high:.{digits}f})"
