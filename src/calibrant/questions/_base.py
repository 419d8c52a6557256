"""What a question promises: a table of networks in; a sentence, numbers with intervals and pictures out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from calibrant.core.catalogue import check_options
from calibrant.core.errors import InputError
from calibrant.questions._resampled import Estimate, Resampled

if TYPE_CHECKING:
    import polars as pl

Verdict = Literal["agrees", "differs", "cannot be told"]
Kind = Literal["tau", "share", "factor"]

KEYS = ("space", "data", "arch", "unique", "constant")  # what says which network a row is about
COPIES = "copies"  # how many cells of the whole space a row stands for
STUDY = "Tao et al., A Benchmark Study on Calibration, ICLR 2024"
# How exactly a published number can be read off its figure, and above which width an interval does not tell.
SLACK: dict[Kind, float] = {"tau": 0.01, "share": 0.002, "factor": 0.1}
WIDE: dict[Kind, float] = {"tau": 0.5, "share": 0.03, "factor": 2.0}
BOUNDS: dict[Kind, tuple[float, float]] = {"tau": (-1, 1), "share": (0, 1), "factor": (0, np.inf)}


@dataclass(frozen=True)
class Number:
    """One number of an answer, with its interval and, where there is one, the published number.

    An interval that holds the published number agrees with it, unless it is so wide that it would agree with any.

    >>> Number("tau", "cifar10", 200, 0.4, 0.3, 0.5, published=0.36).verdict
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
            return "cannot be told"
        slack = SLACK[self.kind]
        if not self.low - slack <= self.published <= self.high + slack:
            return "differs"
        return "agrees" if self.high - self.low <= WIDE[self.kind] else "cannot be told"


@dataclass(frozen=True)
class Claim:
    """A published statement, and whether these networks bear it out."""

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
    """How many networks a question was asked of."""

    space: str
    data: str
    networks: int
    unique: int
    constant: int  # of the unique ones


@dataclass(frozen=True)
class Answer:
    """What a table says to a question. It may say that the data do not tell."""

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
        """Agrees with the published answer only if every main claim holds."""
        said = {claim.verdict for claim in self.claims if claim.main}
        return "differs" if "differs" in said else "agrees" if said == {"agrees"} else "cannot be told"


@dataclass(frozen=True)
class Question:
    """A question to a table with one row for each network and data set.

    Intervals are about other networks of the same space: networks are resampled, not images or trainings.
    """

    resamples: int = 200
    most: int = 500  # networks in a resample; above, intervals come from a random part and are scaled
    seed: int = 0

    title: ClassVar[str]
    order: ClassVar[int]  # in the study
    method: ClassVar[str]
    published: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]  # columns, beside KEYS
    wants: ClassVar[tuple[str, ...]] = ()  # columns that are used where the table has them
    spaces: ClassVar[tuple[str, ...]] = ("topology",)
    reference: ClassVar[str] = STUDY

    def __post_init__(self) -> None:
        check_options(self)
        for name, least in (("resamples", 1), ("most", 2), ("seed", 0)):
            if (value := getattr(self, name)) < least:
                raise InputError(name, expected=f"at least {least}", got=str(value), fix="give a larger value")

    def __call__(self, table: "pl.DataFrame") -> Answer:
        import polars as pl

        self.check(table)
        kept = table.select(*KEYS, *self.needs, *(name for name in (*self.wants, COPIES) if name in table.columns))
        kept = kept.with_columns(pl.lit(None).alias(name) for name in self.wants if name not in table.columns)
        kept = kept.with_columns(pl.col(*self.needs, *self.wants).cast(pl.Float64))
        n = Networks(kept, self)
        claims, numbers, pictures = self.study(n)
        return Answer(
            question=type(self).__module__.rpartition(".")[2],
            sentence=_sentence(claims),
            published=self.published,
            claims=tuple(claims),
            numbers=tuple(numbers),
            pictures=tuple(pictures),
            populations=tuple(n.populations(self.spaces)),
            note=self._note(),
        )

    def study(self, n: "Networks") -> tuple[list[Claim], list[Number], list[Picture]]:
        raise TypeError(f"{type(self).__name__} does not say how it is answered: define study")

    def check(self, table: "pl.DataFrame") -> None:
        """Refuse a table that this question cannot be asked of, and say what it needs."""
        name = type(self).__module__.rpartition(".")[2]
        if missing := [column for column in (*KEYS, *self.needs) if column not in table.columns]:
            shown = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
            raise InputError(
                f"table for the question {name}",
                expected=f"a column {missing[0]}" if len(missing) == 1 else "columns that it needs",
                got=f"no {shown}",
                fix=f"add {'it' if len(missing) == 1 else 'them'}, or ask a question that needs less",
            )
        asked = [column for column in (*self.needs, *self.wants) if column in table.columns]
        if wrong := [c for c in asked if not (table[c].dtype.is_numeric() or table[c].dtype.is_(_null()))]:
            got = f"type {table[wrong[0]].dtype}"
            raise InputError(
                f"table for the question {name}, column {wrong[0]}", expected="numbers", got=got, fix="check the cells"
            )

    def _note(self) -> str:
        return (
            f"95 % intervals by {self.resamples} resamples of networks (seed {self.seed}), each for itself; "
            f"populations above {self.most:,} networks by a random part of {self.most:,}, scaled to their size. None "
            "for all networks with their isomorphic copies, which are no independent draws and are counted by the "
            "cells they stand for, nor below 20 networks."
        )


@dataclass(frozen=True)
class Networks:
    """The table by space, data set and population."""

    table: "pl.DataFrame"
    question: Question

    def data(self, space: str) -> list[str]:
        """The data sets with networks of the space: the study's first, in its order."""
        import polars as pl

        names = self.table.filter(pl.col("space") == space)["data"].unique(maintain_order=True).to_list()
        return sorted(names, key=lambda name: (rank(name), names.index(name)))

    def of(self, space: str, data: str, *, unique: bool = True) -> "pl.DataFrame":
        """The different networks, or all with their copies: a row as often as it stands for a cell of the space."""
        import polars as pl

        found = self.table.filter((pl.col("space") == space) & (pl.col("data") == data))
        if unique:
            return found.filter("unique")
        return found.select(pl.all().repeat_by(COPIES).explode()) if COPIES in found.columns else found

    def resampled(self, frame: "pl.DataFrame", columns: tuple[str, ...]) -> Resampled:
        """The rows with a number in each of these columns, and resamples of them."""
        q = self.question
        values = {column: frame[column].to_numpy().astype(np.float64) for column in columns}
        kept = np.all([np.isfinite(v) for v in values.values()], axis=0)
        return Resampled({c: v[kept] for c, v in values.items()}, int(kept.sum()), q.resamples, q.most, q.seed)

    def populations(self, spaces: tuple[str, ...]) -> list[Population]:
        found = []
        for space in spaces:
            for data in self.data(space):
                rows = int(((self.table["space"] == space) & (self.table["data"] == data)).sum())
                unique = self.of(space, data)
                found.append(Population(space, data, rows, unique.height, int(unique["constant"].sum() or 0)))
        return found


STUDIED = ("cifar10", "cifar100", "imagenet16_120")


def plain(data: str) -> str:
    """The name of a data set as the published numbers know it.

    >>> plain("ImageNet16-120")
    'imagenet16_120'
    """
    return data.lower().replace("-", "_")


def rank(data: str) -> int:
    return STUDIED.index(plain(data)) if plain(data) in STUDIED else len(STUDIED)


def number(
    name: str, where: str, networks: int, e: Estimate, *, kind: Kind = "tau", published: float | None = None
) -> Number:
    """An estimate as a number of an answer."""
    low, high = e.interval(BOUNDS[kind])
    return Number(name, where, networks, _finite(e.value), _finite(low), _finite(high), kind, published)


def judge(
    says: str, numbers: list[Number], *, below: float = np.inf, above: float = -np.inf, main: bool = True
) -> Claim:
    """Whether numbers lie between two bounds: the claim agrees if all intervals do, differs if one lies outside."""
    told = [n for n in numbers if n.low is not None and n.high is not None]
    outside = [n for n in told if (n.low or 0.0) > below or (n.high or 0.0) < above]
    inside = [n for n in told if (n.high or 0.0) < below and (n.low or 0.0) > above]
    if outside:
        return Claim(says, "differs", _listed(outside), main)
    if told and len(inside) == len(numbers):
        return Claim(says, "agrees", _listed(inside), main)
    unsure = [n for n in numbers if n not in inside]
    because = _listed(unsure) if unsure else "no networks that could tell"
    return Claim(says, "cannot be told", because, main)


def shown(n: Number) -> str:
    """The value and its interval, as a reader wants them.

    >>> shown(Number("tau", "cifar10", 50, 0.4, 0.31, 0.5)), shown(Number("ECE", "", 50, 0.042, kind="share"))
    ('0.40 (0.31 to 0.50)', '4.2 %')
    """
    if n.value is None:
        return "undefined"
    scale, unit = (100, " %") if n.kind == "share" else (1, "")
    digits = 1 if n.kind == "share" else 2
    value = f"{scale * n.value:.{digits}f}{unit}"
    if n.low is None or n.high is None:
        return value
    return f"{value} ({scale * n.low:.{digits}f} to {scale * n.high:.{digits}f})"


def _listed(numbers: list[Number], most: int = 3) -> str:
    parts = [f"{n.name} {shown(n)} on {n.where}" for n in numbers[:most]]
    return "; ".join(parts) + (f"; and {len(numbers) - most} more" if len(numbers) > most else "")


def _sentence(claims: list[Claim]) -> str:
    """What the main claims come to."""
    words = {
        "agrees": "As published: {}.",
        "differs": "Not as published: here it is not so that {}.",
        "cannot be told": "The data do not tell whether {}.",
    }
    return " ".join(words[claim.verdict].format(claim.says) for claim in claims if claim.main)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _null() -> "pl.DataType":
    import polars as pl

    return pl.Null()
