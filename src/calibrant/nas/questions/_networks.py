"""A table of networks by space, data set and population, as questions look at it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.nas.questions._answer import Population
from calibrant.nas.questions._resamples import NetworkResamples

if TYPE_CHECKING:
    import polars as pl

KEYS = ("space", "data", "arch", "unique", "constant")  # what says which network a row is about
COPIES = "copies"  # how many cells of the whole space a row stands for
STUDIED = ("cifar10", "cifar100", "imagenet16_120")


@dataclass(frozen=True)
class Networks:
    """The table by space, data set and population."""

    table: "pl.DataFrame"
    resamples: int
    most: int  # networks in a resample
    seed: int

    def data(self, space: str) -> list[str]:
        """The data sets with networks of the space: the study's first, in its order."""
        import polars as pl

        names = self.table.filter(pl.col("space") == space)["data"].unique(maintain_order=True).to_list()
        return sorted(names, key=lambda name: (rank(name), names.index(name)))

    def of(self, space: str, data: str, *, unique: bool = True) -> "pl.DataFrame":
        """The different networks, or all with their copies: a row as often as it stands for a cell of the space."""
        import polars as pl

        rows = self.table.filter((pl.col("space") == space) & (pl.col("data") == data))
        if unique:
            return rows.filter("unique")
        return rows.select(pl.all().repeat_by(COPIES).explode()) if COPIES in rows.columns else rows

    def resample(self, frame: "pl.DataFrame", columns: tuple[str, ...]) -> NetworkResamples:
        """The rows with a number in each of these columns, and resamples of them."""
        values = {column: frame[column].to_numpy().astype(np.float64) for column in columns}
        complete = np.all([np.isfinite(v) for v in values.values()], axis=0)
        return NetworkResamples(
            {c: v[complete] for c, v in values.items()}, int(complete.sum()), self.resamples, self.most, self.seed
        )

    def populations(self, spaces: tuple[str, ...]) -> list[Population]:
        populations = []
        for space in spaces:
            for data in self.data(space):
                rows = int(((self.table["space"] == space) & (self.table["data"] == data)).sum())
                unique = self.of(space, data)
                populations.append(Population(space, data, rows, unique.height, int(unique["constant"].sum() or 0)))
        return populations


def plain(data: str) -> str:
    """The name of a data set as the published numbers know it.

    >>> plain("ImageNet16-120")
    'imagenet16_120'
    """
    return data.lower().replace("-", "_")


def rank(data: str) -> int:
    return STUDIED.index(plain(data)) if plain(data) in STUDIED else len(STUDIED)
