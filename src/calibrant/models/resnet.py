"""Residual networks of the ImageNet family, with a stem for small images or for large ones."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._blocks import Residual, basic, bottleneck, conv_bn, start_he

BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    110: (3, 4, 26, 3),
    152: (3, 8, 36, 3),
}


@dataclass(frozen=True)
class ResNet(Model):
    """Four stages of 64 to 512 channels: basic blocks at depth 18 and 34, bottlenecks (four times wider) beyond.

    depth=110 is what focal_calibration calls ResNet-110, 26 times larger than the usual one: `resnet_small:depth=110`.

    >>> from calibrant.models import Shape, count
    >>> count(ResNet(depth=18).build(Shape(classes=10)))
    11173962

    `stem=cifar` is one 3x3 convolution, `stem=imagenet` a 7x7 of stride 2 and a max pool. `pool=2x2` gives the head the
    four quarters of the image apart, as focal_calibration does on Tiny-ImageNet. Weights start as torch starts them for
    `stem=cifar` with global pooling, and by He's rule (fan out) otherwise: each as in its source.
    """

    depth: int = 18
    stem: Literal["cifar", "imagenet"] = "cifar"
    pool: Literal["global", "2x2"] = "global"

    title: ClassVar[str] = "ResNet"
    reference: ClassVar[str] = "He, Zhang, Ren, Sun, CVPR 2016"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.check_choice("resnet:depth", self.depth, BLOCKS)

    def build(self, shape: Shape) -> Network:
        corners = 2 if self.pool == "2x2" else 1
        check.image("resnet", shape, corners * (32 if self.stem == "imagenet" else 8))
        network = ResidualNetwork(shape, self.depth, self.stem == "imagenet", corners)
        if self.stem == "imagenet" or self.pool == "2x2":
            start_he(network, "fan_out")
        return network


class ResidualNetwork(Network):
    def __init__(self, shape: Shape, depth: int, large: bool, corners: int) -> None:
        super().__init__()
        self.corners = corners
        small_stem = (conv_bn(shape.channels, 64), nn.ReLU())
        large_stem = (conv_bn(shape.channels, 64, 7, stride=2), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1))
        self.stem = nn.Sequential(*(large_stem if large else small_stem))
        block, wider = (bottleneck, 4) if depth >= 50 else (basic, 1)
        stages, inside = [], 64
        for stage, blocks in enumerate(BLOCKS[depth]):
            outside = wider * 64 * 2**stage
            for i in range(blocks):
                stride = 2 if stage and not i else 1
                same_shape = stride == 1 and inside == outside
                shortcut = nn.Identity() if same_shape else conv_bn(inside, outside, 1, stride=stride)
                stages.append(Residual(block(inside, outside, stride), shortcut))
                inside = outside
        self.blocks = nn.Sequential(*stages)
        self.head = nn.Linear(inside * corners**2, shape.classes)

    def features(self, x: Tensor) -> Tensor:
        x = self.blocks(self.stem(x))
        return x.mean((2, 3)) if self.corners == 1 else nn.functional.adaptive_avg_pool2d(x, self.corners).flatten(1)
