"""Base classes of networks: `features(x)` are what the last layer, `head`, turns into logits."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from calibrant.core.catalogue import check_options
from calibrant.core.errors import InputError


@dataclass(frozen=True)
class Shape:
    """Shape of a network's data: square images of `size` pixels with `channels`, in `classes`."""

    classes: int
    channels: int = 3
    size: int = 32

    def __post_init__(self) -> None:
        for name, least in (("classes", 2), ("channels", 1), ("size", 1)):
            value = getattr(self, name)
            if value < least:
                raise InputError(f"shape.{name}", expected=f"at least {least}", got=str(value), fix="check the data")


class Network(nn.Module):
    """Images (B, channels, size, size) to logits (B, classes), by way of features (B, d).

    Under `torch.func.jvp` in training mode, hand copies of the buffers to `functional_call` inside the function:
    batch norm counts its batches in place, which a transform refuses for tensors it has not made.
    """

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


def count(network: nn.Module) -> int:
    """The number of trained parameters.

    >>> count(nn.Linear(512, 10))
    5130
    """
    return sum(p.numel() for p in network.parameters() if p.requires_grad)
