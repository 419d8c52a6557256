"""The cells of NATS-Bench and the skeleton around them."""

import re
from collections.abc import Sequence

from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.models._base import Network, Shape
from calibrant.models._blocks import conv, conv_bn

OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))  # from, to: the order of a cell's text
BEST = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
OPERATION = re.compile(r"(\w+)~(\d)")


def read(cell: str) -> tuple[str, ...]:
    """The six operations of a cell, in the order of EDGES."""
    operations = tuple(name for name, _ in OPERATION.findall(cell))
    if len(operations) != len(EDGES) or write(operations) != cell:
        raise InputError(
            "cell",
            expected="six operations as |a~0|+|b~0|c~1|+|d~0|e~1|f~2|",
            got=f"'{cell}'",
            fix=f"write for instance {BEST}",
        )
    if unknown := [name for name in operations if name not in OPERATIONS]:
        expected = f"operations out of {', '.join(OPERATIONS)}"
        raise InputError("cell", expected=expected, got=f"'{unknown[0]}'", fix="correct that name")
    return operations


def write(operations: Sequence[str]) -> str:
    """The text of a cell."""
    nodes: dict[int, str] = {}
    for name, (source, to) in zip(operations, EDGES, strict=True):
        nodes[to] = f"{nodes.get(to, '|')}{name}~{source}|"
    return "+".join(nodes.values())


class CellNetwork(Network):
    """A 3x3 convolution, cells and residual blocks as given, norm, ReLU, global pool, linear head."""

    def __init__(self, shape: Shape, first: int, layers: Sequence[nn.Module], last: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(conv_bn(shape.channels, first), *layers, nn.BatchNorm2d(last), nn.ReLU())
        self.head = nn.Linear(last, shape.classes)

    def features(self, x: Tensor) -> Tensor:
        x = self.layers(x)
        return x.mean((2, 3))


class Cell(nn.Module):
    """Four nodes, each the sum of what its edges make of earlier nodes."""

    def __init__(self, operations: Sequence[str], inside: int, outside: int) -> None:
        super().__init__()
        widths = [inside if source == 0 else outside for source, _ in EDGES]
        self.edges = nn.ModuleList(_operation(*edge, outside) for edge in zip(operations, widths, strict=True))

    def forward(self, x: Tensor) -> Tensor:
        nodes: dict[int, Tensor] = {0: x}
        for edge, (source, to) in zip(self.edges, EDGES, strict=True):
            made: Tensor = edge(nodes[source])
            nodes[to] = nodes[to] + made if to in nodes else made
        return nodes[3]


class Halving(nn.Module):
    """A residual block that halves the image; its shortcut is an average pool and a 1x1 convolution without norm."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            *(nn.ReLU(), conv_bn(inside, outside, stride=2)),
            *(nn.ReLU(), conv_bn(outside, outside)),
        )
        # Rounded up as the stride is: the two must agree on images of odd size.
        self.shortcut = nn.Sequential(nn.AvgPool2d(2, ceil_mode=True), conv(inside, outside, 1))

    def forward(self, x: Tensor) -> Tensor:
        halved: Tensor = self.shortcut(x) + self.branch(x)
        return halved


class Zero(nn.Module):
    """Zeros that still depend on x, so that every weight before has a gradient, if only of zero."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 0.0


def _operation(name: str, inside: int, outside: int) -> nn.Module:
    if name.startswith("nor_conv"):
        return nn.Sequential(nn.ReLU(), conv_bn(inside, outside, int(name[-1])))
    if name == "skip_connect":
        return nn.Identity() if inside == outside else conv_bn(inside, outside, 1)
    return Zero() if name == "none" else nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
