"""MLP-Mixer: patches and channels mixed in turn, without attention or convolution."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from calibrant.models import _checks as check
from calibrant.models._base import Model, Network, Shape
from calibrant.models._blocks import MLP, Patches, start_truncated

MOST = {"patch": 256, "width": 8192, "depth": 100, "tokens": 8192, "mlp": 32768}  # Mixer-H: 14, 1280, 32, 640, 5120


@dataclass(frozen=True)
class Mixer(Model):
    """MLP-Mixer-B/16 by default, made for images of 224; initial weights truncated normal (0.02), biases zero.

    Its weights know the number of patches: a network built for one image size cannot take another.

    >>> from calibrant.models import Shape, count
    >>> count(Mixer(patch=4, width=96, depth=4, tokens=48, mlp=192).build(Shape(classes=10)))
    181034
    """

    patch: int = 16
    width: int = 768
    depth: int = 12
    tokens: int = 384  # hidden width of the layer that mixes patches
    mlp: int = 3072  # and of the one that mixes channels

    title: ClassVar[str] = "MLP-Mixer"
    reference: ClassVar[str] = "Tolstikhin et al., NeurIPS 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, most in MOST.items():
            check.up_to(f"mixer:{name}", getattr(self, name), most)

    def build(self, shape: Shape) -> Network:
        return MixerNetwork(shape, check.patches("mixer", shape, self.patch), self)


class MixerNetwork(Network):
    def __init__(self, shape: Shape, patches: int, options: Mixer) -> None:
        super().__init__()
        self.patches = Patches(shape.channels, options.width, options.patch)
        blocks = (MixerBlock(patches, options) for _ in range(options.depth))
        self.blocks = nn.Sequential(*blocks, nn.LayerNorm(options.width, eps=1e-6))
        self.head = nn.Linear(options.width, shape.classes)
        start_truncated(self)

    def features(self, x: Tensor) -> Tensor:
        x = self.blocks(self.patches(x))
        return x.mean(dim=1)


class MixerBlock(nn.Module):
    def __init__(self, patches: int, options: Mixer) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(options.width, eps=1e-6)
        self.across = MLP(patches, options.tokens)
        self.within = nn.Sequential(nn.LayerNorm(options.width, eps=1e-6), MLP(options.width, options.mlp))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.across(self.norm(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.within(x)
        return x
