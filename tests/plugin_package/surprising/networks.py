"""A loss and a network."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from calibrant.losses import Loss
from calibrant.models import Model, Network, Shape


@dataclass(eq=False, repr=False, kw_only=True)
class Plain(Loss):
    """Cross-entropy written in three words."""

    title: ClassVar[str] = "Plain"
    reference: ClassVar[str] = "-"

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(logits, labels)


class FlatNetwork(Network):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head = nn.Linear(shape.channels * shape.size**2, shape.classes)

    def features(self, x: Tensor) -> Tensor:
        return x.flatten(1)


@dataclass(frozen=True)
class Flat(Model):
    """One layer over all pixels."""

    title: ClassVar[str] = "Flat"
    reference: ClassVar[str] = "-"

    def build(self, shape: Shape) -> Network:
        return FlatNetwork(shape)
