"""The cells of NATS-Bench and the skeleton around them; weights have the names of the benchmark's published files."""

from collections.abc import Sequence

from torch import Tensor, nn

from calibrant.core.nats import EDGES
from calibrant.models._base import Network, Shape
from calibrant.models._blocks import conv, conv_bn


class CellNetwork(Network):
    """A 3x3 convolution, cells and residual blocks as given, norm, ReLU, global pool, linear head."""

    def __init__(self, shape: Shape, first: int, cells: Sequence[nn.Module], last: int) -> None:
        super().__init__()
        self.stem = conv_bn(shape.channels, first)
        self.cells = nn.ModuleList(cells)
        self.lastact = nn.Sequential(nn.BatchNorm2d(last), nn.ReLU())
        self.classifier = nn.Linear(last, shape.classes)

    @property
    def head(self) -> nn.Module:  # type: ignore[override]  # the benchmark calls it classifier
        return self.classifier

    def features(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for cell in self.cells:
            x = cell(x)
        x = self.lastact(x)
        return x.mean((2, 3))


class Cell(nn.Module):
    """Four nodes, each the sum of the edges from earlier nodes."""

    def __init__(self, operations: Sequence[str], inside: int, outside: int) -> None:
        super().__init__()
        widths = [inside if source == 0 else outside for source, _ in EDGES]
        self.layers = nn.ModuleList(_operation(*edge, outside) for edge in zip(operations, widths, strict=True))

    def forward(self, x: Tensor) -> Tensor:
        nodes: dict[int, Tensor] = {0: x}
        for edge, (source, to) in zip(self.layers, EDGES, strict=True):
            output: Tensor = edge(nodes[source])
            nodes[to] = nodes[to] + output if to in nodes else output
        return nodes[3]


class Halving(nn.Module):
    """A residual block that halves the image; its shortcut is an average pool and a 1x1 convolution without norm."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.conv_a = Convolution(inside, outside, 3, stride=2)
        self.conv_b = Convolution(outside, outside, 3)
        # Rounded up as the stride is: the two must agree on images of odd size.
        self.downsample = nn.Sequential(nn.AvgPool2d(2, ceil_mode=True), conv(inside, outside, 1))

    def forward(self, x: Tensor) -> Tensor:
        halved: Tensor = self.downsample(x) + self.conv_b(self.conv_a(x))
        return halved


class Convolution(nn.Module):
    """ReLU, convolution, norm."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.op = nn.Sequential(nn.ReLU(), *conv_bn(inside, outside, kernel, stride=stride))

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.op(x)
        return output


class Widening(nn.Module):
    """A 1x1 convolution and a norm in place of a skip between different widths."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.conv, self.bn = conv_bn(inside, outside, 1)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.bn(self.conv(x))
        return output


class Zero(nn.Module):
    """Zeros that still depend on x, so that every weight before has a gradient, if only of zero."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 0.0


def _operation(name: str, inside: int, outside: int) -> nn.Module:
    if name.startswith("nor_conv"):
        return Convolution(inside, outside, int(name[-1]))
    if name == "skip_connect":
        return nn.Identity() if inside == outside else Widening(inside, outside)
    return Zero() if name == "none" else nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
