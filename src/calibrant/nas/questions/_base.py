"""Base class of questions: a table of networks in; a sentence, numbers with intervals and pictures out."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from calibrant.core.catalogue import check_options, name_of
from calibrant.core.errors import InputError
from calibrant.nas.questions._answer import Answer, Claim, Number, Picture, Population, format_value
from calibrant.nas.questions._claims import check_claim, number
from calibrant.nas.questions._networks import COPIES, KEYS, Networks, plain

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Answer",
    "Claim",
    "Networks",
    "Number",
    "Picture",
    "Population",
    "Question",
    "check_claim",
    "format_value",
    "number",
    "plain",
]

STUDY = "Tao et al., A Benchmark Study on Calibration, ICLR 2024"


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

    @property
    def name(self) -> str:
        return name_of(self)

    def __call__(self, table: "pl.DataFrame") -> Answer:
        import polars as pl

        self.check(table)
        columns = table.select(*KEYS, *self.needs, *(name for name in (*self.wants, COPIES) if name in table.columns))
        columns = columns.with_columns(pl.lit(None).alias(name) for name in self.wants if name not in table.columns)
        columns = columns.with_columns(pl.col(*self.needs, *self.wants).cast(pl.Float64))
        n = Networks(columns, self.resamples, self.most, self.seed)
        claims, numbers, pictures = self.study(n)
        return Answer(
            question=self.name,
            sentence=_sentence(claims),
            published=self.published,
            claims=tuple(claims),
            numbers=tuple(numbers),
            pictures=tuple(pictures),
            populations=tuple(n.populations(self.spaces)),
            note=self._note(),
        )

    def study(self, n: Networks) -> tuple[list[Claim], list[Number], list[Picture]]:
        raise TypeError(f"{type(self).__name__} does not say how it is answered: define study")

    def check(self, table: "pl.DataFrame") -> None:
        """Refuse a table that this question cannot be asked of, and say what it needs."""
        name = self.name
        if missing := [column for column in (*KEYS, *self.needs) if column not in table.columns]:
            names = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
            raise InputError(
                f"table for the question {name}",
                expected=f"a column {missing[0]}" if len(missing) == 1 else "columns that it needs",
                got=f"no {names}",
                fix=f"add {'it' if len(missing) == 1 else 'them'}, or ask a question that needs less",
            )
        present = [column for column in (*self.needs, *self.wants) if column in table.columns]
        if wrong := [c for c in present if not (table[c].dtype.is_numeric() or table[c].dtype.is_(_null()))]:
            got = f"type {table[wrong[0]].dtype}"
            raise InputError(
                f"table for the question {name}, column {wrong[0]}", expected="numbers", got=got, fix="check the cells"
            )

    def _note(self) -> str:
        return (
            f"95 % intervals by {self.resamples} resamples of networks (seed {self.seed}), each for itself; "
            f"populations above {self.most:,} networks by a random part of {self.most:,}, scaled to their size. None "
            "for all networks with their isomorphic copies, which are not independent draws and are counted by the "
            "cells they stand for, nor below 20 networks."
        )


def _sentence(claims: list[Claim]) -> str:
    """A sentence that summarises the main claims."""
    words = {
        "agrees": "As published: {}.",
        "differs": "Not as published: here it is not so that {}.",
        "inconclusive": "The data do not tell whether {}.",
    }
    return " ".join(words[claim.verdict].format(claim.says) for claim in claims if claim.main)


def _null() -> "pl.DataType":
    import polars as pl

    return pl.Null()
