"""The topology space of NATS-Bench (NAS-Bench-201): 15 625 networks that differ in the wiring of one cell."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from calibrant.core.nats import BEST, find_cell, read_cell
from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._nats import Cell, CellNetwork, Halving


@dataclass(frozen=True)
class NATSTopology(Model):
    """Three stages of equal cells in 16, 32 and 64 channels; `cell` is its text or its index; torch's own start.

    Many cells compute the same function and 341 ignore the image: `calibrant nas show` says which.

    >>> from calibrant.models import Shape, count
    >>> count(NATSTopology(cell="11").build(Shape(classes=10)))
    802426
    """

    cell: str = BEST
    width: int = 16  # channels of the first stage
    cells: int = 5  # of each stage

    title: ClassVar[str] = "NATS-Bench topology"
    reference: ClassVar[str] = "Dong, Liu, Musial, Gabrys, TPAMI 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.up_to("nats_topology:width", self.width, 512)
        check.up_to("nats_topology:cells", self.cells, 100)
        find_cell(self.cell)

    def build(self, shape: Shape) -> Network:
        check.image("nats_topology", shape, 4)
        operations = read_cell(find_cell(self.cell))
        layers: list[nn.Module] = []
        for width in (self.width, 2 * self.width, 4 * self.width):
            if layers:
                layers.append(Halving(width // 2, width))
            layers += [Cell(operations, width, width) for _ in range(self.cells)]
        return CellNetwork(shape, self.width, layers, 4 * self.width)
