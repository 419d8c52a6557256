"""DenseNets for small images: every layer sees all earlier ones of its block."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._blocks import conv

LAYERS = {121: (6, 12, 24, 16), 161: (6, 12, 36, 24), 169: (6, 12, 32, 32), 201: (6, 12, 48, 32)}


@dataclass(frozen=True)
class DenseNet(Model):
    """Four dense blocks with bottlenecks, halved in channels and size between; 3x3 stem; default initialisation.

    Memory grows with the square of the layers of a block: take smaller batches than for a ResNet of its size.

    >>> from calibrant.models import Shape, count
    >>> count(DenseNet().build(Shape(classes=10)))
    6956298

    `transition_relu=false` leaves the ReLU between blocks out, as NCToolkit does. DenseNet-161 has `growth=48`.
    """

    depth: int = 121
    growth: int = 32
    transition_relu: bool = True

    title: ClassVar[str] = "DenseNet"
    reference: ClassVar[str] = "Huang, Liu, van der Maaten, Weinberger, CVPR 2017"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.check_choice("densenet:depth", self.depth, LAYERS)
        check.up_to("densenet:growth", self.growth, 256)  # published up to 48

    def build(self, shape: Shape) -> Network:
        check.image("densenet", shape, 8)
        return DenseNetwork(shape, LAYERS[self.depth], self.growth, self.transition_relu)


class DenseNetwork(Network):
    def __init__(self, shape: Shape, layers: tuple[int, ...], growth: int, transition_relu: bool) -> None:
        super().__init__()
        width = 2 * growth
        parts: list[nn.Module] = [conv(shape.channels, width)]
        for block, number in enumerate(layers):
            if block:
                halve = (conv(width, width // 2, 1), nn.AvgPool2d(2))
                parts += [nn.BatchNorm2d(width), *([nn.ReLU()] if transition_relu else []), *halve]
                width //= 2
            parts += [DenseLayer(width + i * growth, growth) for i in range(number)]
            width += number * growth
        self.blocks = nn.Sequential(*parts, nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width, shape.classes)

    def features(self, x: Tensor) -> Tensor:
        x = self.blocks(x)
        return x.mean((2, 3))


class DenseLayer(nn.Module):
    """A layer that appends `growth` channels to its input."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        narrow = (nn.BatchNorm2d(inside), nn.ReLU(), conv(inside, 4 * growth, 1))
        self.branch = nn.Sequential(*narrow, nn.BatchNorm2d(4 * growth), nn.ReLU(), conv(4 * growth, growth))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.branch(x)], dim=1)
