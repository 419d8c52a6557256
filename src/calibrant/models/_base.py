"""What a network promises: `features(x)` are what its last layer, `head`, turns into logits."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from calibrant.core.catalogue import check_options


@dataclass(frozen=True)
class Shape:
    """What a network must fit: square images of `size` pixels with `channels`, in `classes`."""

    classes: int
    channels: int = 3
    size: int = 32


class Network(nn.Module):
    """Images (B, channels, size, size) to logits (B, classes), by way of features (B, d)."""

    head: nn.Module

    def features(self, x: Tensor) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not say its features: define features")

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits


@dataclass(frozen=True)
class Model:
    """A recipe for a network: options only. `build(shape)` makes a fresh one from torch's random numbers."""

    title: ClassVar[str]
    reference: ClassVar[str]

    def __post_init__(self) -> None:
        check_options(self)

    def build(self, shape: Shape) -> Network:
        raise TypeError(f"{type(self).__name__} does not say how it is built: define build")
