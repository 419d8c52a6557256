"""Residual networks of the CIFAR family: 16, 32 and 64 channels."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._blocks import Residual, basic, conv_bn, start_he


@dataclass(frozen=True)
class ResNetSmall(Model):
    """Three stages of (depth - 2) / 6 basic blocks each; He initialisation (fan in), head included.

    Not a cut-down `resnet`: three stages and a quarter of the channels, 1.7 million numbers at depth 110, not 46.

    >>> from calibrant.models import Shape, count
    >>> count(ResNetSmall(depth=20).build(Shape(classes=10)))
    269722

    `shortcut=pad` (the paper's option A) takes every second pixel and adds channels of zeros; `shortcut=conv` projects.
    """

    depth: int = 20
    width: int = 16
    shortcut: Literal["pad", "conv"] = "pad"

    title: ClassVar[str] = "ResNet for small images"
    reference: ClassVar[str] = "He, Zhang, Ren, Sun, CVPR 2016, section 4.2"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.up_to("resnet_small:width", self.width, 1024)  # 16 in the paper
        check.up_to("resnet_small:depth", self.depth, 2000)  # published up to 1202
        if self.depth < 8 or self.depth % 6 != 2:
            near = max(8, 6 * round((self.depth - 2) / 6) + 2)
            raise InputError(
                "resnet_small:depth",
                expected="6 m + 2, for instance 8, 20, 32, 44, 56, 110",
                got=str(self.depth),
                fix=f"did you mean {near}?",
            )

    def build(self, shape: Shape) -> Network:
        check.image("resnet_small", shape, 4)
        return SmallResidualNetwork(shape, (self.depth - 2) // 6, self.width, self.shortcut == "conv")


class SmallResidualNetwork(Network):
    def __init__(self, shape: Shape, blocks: int, width: int, project: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_bn(shape.channels, width), nn.ReLU())
        stages, inside = [], width
        for stage in range(3):
            outside = width * 2**stage
            for i in range(blocks):
                stride = 2 if stage and not i else 1
                shortcut = nn.Identity() if inside == outside else _shortcut(inside, outside, project)
                stages.append(Residual(basic(inside, outside, stride), shortcut))
                inside = outside
        self.blocks = nn.Sequential(*stages)
        self.head = nn.Linear(inside, shape.classes)
        start_he(self, "fan_in")
        nn.init.kaiming_normal_(self.head.weight)

    def features(self, x: Tensor) -> Tensor:
        x = self.blocks(self.stem(x))
        return x.mean((2, 3))


class Pad(nn.Module):
    """Shortcut that takes every second pixel and pads the channels with zeros."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.before, self.after = before, after

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.before, self.after))


def _shortcut(inside: int, outside: int, project: bool) -> nn.Module:
    more = outside - inside
    return conv_bn(inside, outside, 1, stride=2) if project else Pad(more // 2, more - more // 2)
