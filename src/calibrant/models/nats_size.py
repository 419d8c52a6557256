"""The size space of NATS-Bench: 32 768 networks that differ in their channels."""

import re
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from calibrant.core.errors import InputError
from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._nats import BEST, Cell, CellNetwork, Halving, read

WIDTHS = tuple(range(8, 65, 8))


@dataclass(frozen=True)
class NATSSize(Model):
    """One cell a stage; `channels` are those of stem and first cell, then of each layer; torch's own start.

    Wider is not later: c2 and c4 are the blocks that halve the image, c3 and c5 the cells behind them.

    >>> from calibrant.models import Shape, count
    >>> count(NATSSize(channels="8-8-8-16-32").build(Shape(classes=10)))
    49202

    Write `8-8-8-16-32` or, as the benchmark does, `8:8:8:16:32`.
    """

    channels: str = "64-64-64-64-64"

    title: ClassVar[str] = "NATS-Bench size"
    reference: ClassVar[str] = "Dong, Liu, Musial, Gabrys, TPAMI 2021, size space"

    def __post_init__(self) -> None:
        super().__post_init__()
        widths(self.channels)

    def build(self, shape: Shape) -> Network:
        check.image("nats_size", shape, 4)
        c1, c2, c3, c4, c5 = widths(self.channels)
        cell = read(BEST)
        layers = [Cell(cell, c1, c1), Halving(c1, c2), Cell(cell, c2, c3), Halving(c3, c4), Cell(cell, c4, c5)]
        return CellNetwork(shape, c1, layers, c5)


def sizes() -> list[str]:
    """Every network, in the order of the benchmark's index.

    >>> len(sizes()), sizes()[1]
    (32768, '8:8:8:8:16')
    """
    return [":".join(map(str, channels)) for channels in product(WIDTHS, repeat=5)]


def widths(channels: str) -> tuple[int, ...]:
    """The five numbers of a text."""
    parts = re.split("[-:]", channels)
    if len(parts) != 5 or not all(part.isdecimal() and int(part) in WIDTHS for part in parts):
        raise InputError(
            "channels",
            expected=f"five of {', '.join(map(str, WIDTHS))}, joined by - or :",
            got=f"'{channels}'",
            fix="write for instance 8-8-8-16-32",
        )
    return tuple(map(int, parts))
