"""What a loss promises, and the two shapes losses come in: of rows, and terms of a whole batch."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from calibrant.core.catalogue import check_options, spec_of
from calibrant.core.errors import InputError

Reduction = Literal["mean", "sum", "none"]


@dataclass(eq=False, repr=False, kw_only=True)
class Loss(nn.Module):
    """`loss(logits, labels)` is a scalar whose gradients are finite at logits of +-100.

    Half-precision logits are widened to float32 first, so every loss is safe under autocast.
    """

    reduction: Reduction = "mean"

    title: ClassVar[str]
    reference: ClassVar[str]

    def __post_init__(self) -> None:
        nn.Module.__init__(self)
        check_options(self)

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        """The loss of a batch; `ids` number the training samples from 0, for losses with a memory."""
        raise TypeError(f"{type(self).__name__} does not say how it is computed: define rows or value")

    def start(self, samples: int, epochs: int) -> None:
        """Called once before training."""

    def start_epoch(self, epoch: int) -> None:
        """Called before every epoch; the first is 0."""

    def extra_repr(self) -> str:
        return spec_of(self)


@dataclass(eq=False, repr=False, kw_only=True)
class RowLoss(Loss):
    """The mean (or sum) of one number per sample."""

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        """(B, k) logits of at least float32 and (B,) labels to (B,) losses."""
        raise TypeError(f"{type(self).__name__} does not say its value per row: define rows")

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        with torch.autocast(logits.device.type, enabled=False):
            rows = self.rows(wide(logits), labels)
        return rows if self.reduction == "none" else rows.mean() if self.reduction == "mean" else rows.sum()


@dataclass(eq=False, repr=False, kw_only=True)
class Term(Loss):
    """A number of a whole batch, to be added to a loss of rows.

    In a sum (`"focal:gamma=1 + 0.5*mdca"`) the name means the term alone. Asked for by itself, a term gets the partner
    and the weight of its paper: `make("mdca")` is `"focal:gamma=1 + 1*mdca"`. With fewer than two samples a term is 0.
    """

    partner: ClassVar[str] = "ce"
    weight: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reduction == "none":
            name = type(self).__name__
            fix = "use mean or sum"
            raise InputError(f"{name}.reduction", expected="mean or sum", got="none: it has no value per row", fix=fix)

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        """(B, k) logits of at least float32 and (B,) labels to the term, a mean over the batch."""
        raise TypeError(f"{type(self).__name__} does not say its value: define value")

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        if len(labels) < 2:
            return 0.0 * wide(logits).sum()
        with torch.autocast(logits.device.type, enabled=False):
            value = self.value(wide(logits), labels, ids)
        return value * len(labels) if self.reduction == "sum" else value


def wide(logits: Tensor) -> Tensor:
    """Logits in float32 or better."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
