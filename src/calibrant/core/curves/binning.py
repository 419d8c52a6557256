"""Where scores are cut into bins: equal widths, equal shares of the rows, or edges that another rule draws."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.errors import InputError

MOST_BINS = 100_000
MOST_CELLS = 20_000_000  # bins x classes

Scheme = Literal["width", "mass"]
Closed = Literal["right", "left"]


class SortedScores(Protocol):
    """A sorted list of scores, in which each row is as long as its weight; or one list per class, (b, n)."""

    @property
    def total(self) -> float: ...

    def places(self, bins: int) -> Array:
        """The ends of equal shares of the list, (bins + 1,); counted rows are not split, the first get one more."""

    def value(self, places: Array, side: Literal["left", "right"] = "right") -> Array:
        """The scores at places of the list: those behind them, or those in front of them (left)."""


EdgeRule = Callable[[SortedScores, int], Array]  # (..., bins + 1) edges of a sorted list


@dataclass(frozen=True)
class Binning:
    """The bins of a curve: how many, of equal width or mass, and the side on which they are closed.

    Bins of equal mass hold equal shares of the rows, and split ties, unless a `rule` draws their edges.
    """

    bins: int = 15
    scheme: Scheme = "width"
    closed: Closed = "right"
    rule: EdgeRule | None = None

    @property
    def by_place(self) -> bool:
        """Whether a row's place in the sorted list says its bin, and not its score alone."""
        return self.scheme == "mass" and self.rule is None

    def edges(self, scores: SortedScores) -> Array:
        """The scores that part the bins, (..., bins + 1); here equal scores stay together."""
        if self.scheme == "width":
            return open_ends(equal_width_edges(self.bins)[1:-1])
        if self.rule is None:
            return open_ends(scores.value(scores.places(self.bins)[1:-1], "left"))
        return self.rule(scores, self.bins)

    def cuts(self, scores: Array, edges: Array) -> Ints:
        """The places of the edges among sorted scores."""
        return np.searchsorted(scores, edges, side=self.closed)


def open_ends(inner: Array) -> Array:
    """Edges between bins with the ends of the outer two, which take all that is left."""
    ends = np.broadcast_to([-np.inf, np.inf], (*inner.shape[:-1], 2))
    return np.concatenate([ends[..., :1], inner, ends[..., 1:]], axis=-1)


def equal_width_edges(count: int) -> Array:
    """Edges m / count of equal-width bins, correctly rounded, so that edges of 5 bins are also edges of 10."""
    return np.arange(count + 1) / count


def equal_shares(total: float, count: int, *, whole: bool = True) -> Array:
    """The bounds of `count` equal shares of a list; where it has whole rows, the first ones get one more.

    >>> equal_shares(7, 3), equal_shares(7, 4, whole=False)
    (array([0., 3., 5., 7.]), array([0.  , 1.75, 3.5 , 5.25, 7.  ]))
    """
    if not whole:
        return np.linspace(0, total, count + 1)
    size, more = divmod(total, count)
    index = np.arange(count + 1.0)
    return np.asarray(index * size + np.minimum(index, more))


def find_ties(scores: Floats, last: Array) -> tuple[Ints, Ints]:
    """Where the groups of some scores begin and end in the sorted list."""
    return np.searchsorted(scores, last, side="left"), np.searchsorted(scores, last, side="right")


def check_bins(count: int, classes: int = 1) -> None:
    """Refuse so many bins that hardly one holds two rows, before they fill the memory."""
    most = min(MOST_BINS, MOST_CELLS // classes)
    if not 1 <= count <= most:
        expected = f"1 to {most:,}" + (f" (for {classes:,} classes)" if most < MOST_BINS else "")
        fix = "use fewer: of finer bins hardly one holds two rows, and all of them take memory"
        raise InputError("bins", expected=expected, got=f"{count:,}", fix=fix if count > most else "use 15")
