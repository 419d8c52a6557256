"""Wide residual networks: fewer layers, more channels, normalised before each convolution."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._blocks import conv, start_he


@dataclass(frozen=True)
class WideResNet(Model):
    """Three stages of (depth - 4) / 6 blocks, of 16, 32 and 64 times `width` channels; He initialisation (fan out).

    `width` is a factor, not a number of channels: 10 means 640 at the end, and twice the width is four times the work.

    >>> from calibrant.models import Shape, count
    >>> count(WideResNet(depth=16, width=4).build(Shape(classes=10)))
    2748890

    The network of NCToolkit is `wide_resnet:depth=40,width=10,dropout=0.5,bias=true`.
    """

    depth: int = 28
    width: int = 10
    dropout: float = 0.0
    bias: bool = False

    title: ClassVar[str] = "Wide ResNet"
    reference: ClassVar[str] = "Zagoruyko, Komodakis, BMVC 2016"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.up_to("wide_resnet:width", self.width, 64)  # published up to 20
        check.share("wide_resnet:dropout", self.dropout)
        check.up_to("wide_resnet:depth", self.depth, 1000)
        if self.depth < 10 or self.depth % 6 != 4:
            near = max(10, 6 * round((self.depth - 4) / 6) + 4)
            expected = "6 m + 4, for instance 10, 16, 22, 28, 40"
            raise InputError("wide_resnet:depth", expected=expected, got=str(self.depth), fix=f"did you mean {near}?")

    def build(self, shape: Shape) -> Network:
        check.image("wide_resnet", shape, 4)
        return WideNetwork(shape, (self.depth - 4) // 6, self)


class WideNetwork(Network):
    def __init__(self, shape: Shape, blocks: int, options: WideResNet) -> None:
        super().__init__()
        parts: list[nn.Module] = [conv(shape.channels, 16, bias=options.bias)]
        inside = 16
        for stage in range(3):
            outside = 16 * options.width * 2**stage
            for i in range(blocks):
                parts.append(WideBlock(inside, outside, 2 if stage and not i else 1, options))
                inside = outside
        self.blocks = nn.Sequential(*parts, nn.BatchNorm2d(inside), nn.ReLU())
        self.head = nn.Linear(inside, shape.classes)
        start_he(self, "fan_out")

    def features(self, x: Tensor) -> Tensor:
        x = self.blocks(x)
        return x.mean((2, 3))


class WideBlock(nn.Module):
    """Norm, ReLU, convolution, twice. A shortcut that changes the channels starts after the first ReLU."""

    def __init__(self, inside: int, outside: int, stride: int, options: WideResNet) -> None:
        super().__init__()
        bias = options.bias
        self.norm = nn.BatchNorm2d(inside)
        self.branch = nn.Sequential(
            *(conv(inside, outside, stride=stride, bias=bias), nn.BatchNorm2d(outside), nn.ReLU()),
            *(nn.Dropout(options.dropout), conv(outside, outside, bias=bias)),
        )
        self.shortcut = None if inside == outside else conv(inside, outside, 1, stride=stride, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        ready = torch.relu(self.norm(x))
        through: Tensor = self.branch(ready)
        return through + (x if self.shortcut is None else self.shortcut(ready))
