"""Mixup: train on blends of two images and of their labels."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from calibrant.core.errors import InputError
from calibrant.losses._base import Loss, require
from calibrant.losses._make import make
from calibrant.losses.crl import CRL


class MixedLabels(NamedTuple):
    """Labels of a mixed batch: `share` of these labels and the rest of their partners'."""

    labels: Tensor
    partners: Tensor
    share: float

    def rows(self, rows: Tensor) -> "MixedLabels":
        """The pairs of some rows of the batch."""
        return MixedLabels(self.labels[rows], self.partners[rows], self.share)


@dataclass(eq=False, repr=False, kw_only=True)
class Mixup(Loss):
    """share * base(labels) + (1 - share) * base(partners) of a batch made by `mix`; with plain labels, the base loss.

    One share is drawn per batch, from Beta(alpha, alpha). Judge a network on inputs that are not mixed.

    >>> loss, z = Mixup(), torch.tensor([[0.75, 0.25]]).log()
    >>> pairs = MixedLabels(labels=torch.tensor([0]), partners=torch.tensor([1]), share=0.5)
    >>> round(float(loss(z, pairs)), 4)  # -(ln 0.75 + ln 0.25) / 2
    0.837
    """

    alpha: float = 0.2
    base: str | Loss = "ce"

    title: ClassVar[str] = "Mixup"
    reference: ClassVar[str] = "Zhang, Cisse, Dauphin, Lopez-Paz, ICLR 2018"

    def __setattr__(self, name: str, value: Any) -> None:
        # The option is an option, not a part of the network: nn.Module would refuse a loss before it is initialised.
        if name == "base":
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.alpha > 0, "Mixup.alpha", expected="more than 0", got=self.alpha)
        self.inner = self.base if isinstance(self.base, Loss) else make(self.base, self.reduction)
        if any(isinstance(part, CRL | Mixup) for part in self.inner.modules()):
            fix = "take a loss that needs no ids, such as ce or focal"
            raise InputError("Mixup.base", expected="a loss of logits and labels", got=str(self.base), fix=fix)
        self.base, self.reduction = self.inner.extra_repr(), self.inner.reduction

    def mix(
        self, inputs: Tensor, labels: Tensor, generator: torch.Generator | None = None
    ) -> tuple[Tensor, MixedLabels]:
        """Blend every input with a partner from the batch; the same generator state gives the same blend."""
        if not inputs.is_floating_point():
            fix = "scale images to 0..1 first"
            raise InputError("mix", expected="inputs of real numbers", got=str(inputs.dtype), fix=fix)
        device = "cpu" if generator is None else generator.device
        seed = int(torch.randint(2**62, (), generator=generator, device=device))  # torch has no seeded Beta
        share = float(np.random.default_rng(seed).beta(self.alpha, self.alpha))
        order = torch.randperm(len(labels), generator=generator, device=device)
        mixed = torch.lerp(inputs[order.to(inputs.device)], inputs, share)
        return mixed, MixedLabels(labels, labels[order.to(labels.device)], share)

    def forward(self, logits: Tensor, labels: Tensor | MixedLabels, ids: Tensor | None = None) -> Tensor:
        if isinstance(labels, MixedLabels):
            mine, theirs = self.inner(logits, labels.labels), self.inner(logits, labels.partners)
            value: Tensor = labels.share * mine + (1 - labels.share) * theirs
        else:
            value = self.inner(logits, labels)
        return value

    def start(self, samples: int, epochs: int) -> None:
        self.inner.start(samples, epochs)

    def start_epoch(self, epoch: int) -> None:
        self.inner.start_epoch(epoch)
