"""Base classes of losses: of rows, and terms of a whole batch."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from calibrant.core.catalogue import check_options, spec_of
from calibrant.core.errors import InputError

Reduction = Literal["mean", "sum", "none"]
AS_IT_IS = nullcontext()


@dataclass(eq=False, repr=False, kw_only=True)
class Loss(nn.Module):
    """`loss(logits, labels)` is a scalar whose gradients are finite at logits of +-100.

    Half-precision logits are widened to float32 first, so every loss is safe under autocast.
    """

    reduction: Reduction = "mean"

    title: ClassVar[str]
    reference: ClassVar[str]
    least_classes: ClassVar[int] = 2
    sees_constants: ClassVar[bool] = False  # a constant added to a row of logits changes it
    sees_order: ClassVar[bool] = False  # so does the order of samples in a batch
    may_be_negative: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Let a `forward(logits, labels)` without ids be called with ids too."""
        own = cls.__dict__.get("forward")
        if own is None or len(signature(own).parameters) > 3:
            return

        @wraps(own)
        def forward(self: Loss, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
            loss: Tensor = own(self, logits, labels)
            return loss

        cls.forward = forward  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        nn.Module.__init__(self)
        check_options(self)

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        """The loss of a batch; `ids` number the training samples from 0, for losses with a memory."""
        raise TypeError(f"{type(self).__name__} does not say how it is computed: define rows or value")

    def start(self, samples: int, epochs: int) -> None:
        """Reset the memory of the loss; called once before training."""

    def start_epoch(self, epoch: int) -> None:
        """Called before every epoch; the first is 0."""

    def extra_repr(self) -> str:
        return spec_of(self)


@dataclass(eq=False, repr=False, kw_only=True)
class RowLoss(Loss):
    """The mean (or sum) of one number per sample."""

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The losses (B,) of logits (B, k) of at least float32 and labels (B,)."""
        raise TypeError(f"{type(self).__name__} does not say its value per row: define rows")

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        logits, labels = ready(logits, labels)
        with full_precision(logits):
            rows = self.rows(logits, labels)
        return rows if self.reduction == "none" else rows.mean() if self.reduction == "mean" else rows.sum()


@dataclass(eq=False, repr=False, kw_only=True)
class Term(Loss):
    """A number of a whole batch, to be added to a loss of rows.

    In a sum (`"focal:gamma=1 + 0.5*mdca"`) the name means the term alone. Asked for by itself, a term gets the partner
    and the weight of its paper: `make("mdca")` is `"focal:gamma=1 + 1*mdca"`. With a weight it is what is written:
    `make("1*mdca")` is the term alone. With fewer than two samples a term is 0.
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
        """The term, a mean over the batch, of logits (B, k) of at least float32 and labels (B,)."""
        raise TypeError(f"{type(self).__name__} does not say its value: define value")

    def remember(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> None:
        """Update the memory of a term by a batch of training, after its value is taken."""

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        logits, labels = ready(logits, labels)
        with full_precision(logits):
            value = self.value(logits, labels, ids) if len(labels) > 1 else 0.0 * logits.sum()
            if self.training and torch.is_grad_enabled():  # not while a network is only judged
                self.remember(logits, labels, ids)
        return value * len(labels) if self.reduction == "sum" else value


def ready(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Check shapes; logits in float32 or better and labels as indices."""
    if logits.dim() != 2 or labels.shape != logits.shape[:1] or labels.is_floating_point():
        raise InputError(
            "loss",
            expected="logits (B, k) and B whole labels",
            got=f"{tuple(logits.shape)} and {tuple(labels.shape)} of {labels.dtype}",
            fix="give one row of logits and one class number per sample",
        )
    return (logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits), labels.long()


def full_precision(logits: Tensor) -> AbstractContextManager[object]:
    """Switch autocast off inside, only where it is on: entering a context takes longer than a small loss."""
    kind = logits.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else AS_IT_IS


def require(ok: bool, what: str, *, expected: str, got: float) -> None:
    """Raise an error about the value of an option unless `ok`."""
    if not ok:
        raise InputError(what, expected=expected, got=f"{got:g}", fix="give another value")
