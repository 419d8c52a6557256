"""The size space of NATS-Bench: 32 768 networks that differ in their channels."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.nats import BEST, find_size, read_cell, read_widths
from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._nats import Cell, CellNetwork, Halving


@dataclass(frozen=True)
class NATSSize(Model):
    """One cell per stage; `channels` are those of stem and first cell, then of each layer; default initialisation.

    Wider is not later: c2 and c4 are the blocks that halve the image, c3 and c5 the cells behind them.

    >>> from calibrant.models import Shape, count
    >>> count(NATSSize(channels="8-8-8-16-32").build(Shape(classes=10)))
    49202

    Write `8-8-8-16-32` or, as the benchmark does, `8:8:8:16:32`, or the index.
    """

    channels: str = "64-64-64-64-64"
    width: int = 8  # channels that stand for 8 of `channels`: 4 halves every layer

    title: ClassVar[str] = "NATS-Bench size"
    reference: ClassVar[str] = "Dong, Liu, Musial, Gabrys, TPAMI 2021, size space"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.up_to("nats_size:width", self.width, 256)
        find_size(self.channels)

    def build(self, shape: Shape) -> Network:
        check.image("nats_size", shape, 4)
        c1, c2, c3, c4, c5 = (c // 8 * self.width for c in read_widths(find_size(self.channels)))
        cell = read_cell(BEST)
        layers = [Cell(cell, c1, c1), Halving(c1, c2), Cell(cell, c2, c3), Halving(c3, c4), Cell(cell, c4, c5)]
        return CellNetwork(shape, c1, layers, c5)
