"""The topology space of NATS-Bench (NAS-Bench-201): 15 625 networks that differ in the wiring of one cell."""

import random
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import ClassVar

from torch import nn

from calibrant.core.errors import InputError
from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._nats import BEST, EDGES, OPERATIONS, Cell, CellNetwork, Halving, read, write


@dataclass(frozen=True)
class NATSTopology(Model):
    """Three stages of five equal cells in 16, 32 and 64 channels; `cell` is its text or its index; torch's own start.

    Many cells compute the same function (6466 are different) and 341 ignore the image: see `key` and `is_constant`.

    >>> from calibrant.models import Shape, count
    >>> count(NATSTopology(cell="11").build(Shape(classes=10)))
    802426
    """

    cell: str = BEST

    title: ClassVar[str] = "NATS-Bench topology"
    reference: ClassVar[str] = "Dong, Liu, Musial, Gabrys, TPAMI 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        find_cell(self.cell)

    def build(self, shape: Shape) -> Network:
        check.image("nats_topology", shape, 4)
        operations = read(find_cell(self.cell))
        layers: list[nn.Module] = []
        for width in (16, 32, 64):
            if layers:
                layers.append(Halving(width // 2, width))
            layers += [Cell(operations, width, width) for _ in range(5)]
        return CellNetwork(shape, 16, layers, 64)


@cache
def cells() -> tuple[str, ...]:
    """Every cell, in the order of the benchmark's index.

    >>> cells()[9]
    '|avg_pool_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|nor_conv_3x3~2|'
    """
    ordered = [write(operations) for operations in product(OPERATIONS, repeat=len(EDGES))]
    random.Random(88).shuffle(ordered)  # how the benchmark numbered its cells
    return tuple(ordered)


def find_cell(cell: str) -> str:
    """The text of a cell that is given as text or as index."""
    if not cell.isdecimal():
        return write(read(cell))
    if int(cell) >= len(cells()):
        raise InputError("cell", expected=f"an index in 0..{len(cells()) - 1}", got=cell, fix="give a smaller one")
    return cells()[int(cell)]


def key(cell: str) -> str:
    """Equal for cells that the benchmark counts as isomorphic: 6466 different keys.

    >>> cell = "|skip_connect~0|+|none~0|none~1|+|{}~0|{}~1|none~2|"
    >>> key(cell.format("nor_conv_1x1", "avg_pool_3x3")) == key(cell.format("avg_pool_3x3", "nor_conv_1x1"))
    True
    """
    terms: dict[int, list[str]] = {}
    keys = {0: "0"}
    for name, (source, to) in zip(read(find_cell(cell)), EDGES, strict=True):
        before = keys[source]
        gone = name == "none" or before == "#"
        term = "#" if gone else before if name == "skip_connect" else f"({before})@{name}"
        terms.setdefault(to, []).append(term)
        keys[to] = "+".join(sorted(terms[to]))
    return keys[3]


def is_constant(cell: str) -> bool:
    """Whether no path leads from the image to the end of the cell: 341 cells.

    >>> is_constant("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|nor_conv_3x3~2|")
    True
    """
    reached = {0}
    for name, (source, to) in zip(read(find_cell(cell)), EDGES, strict=True):
        if name != "none" and source in reached:
            reached.add(to)
    return 3 not in reached
