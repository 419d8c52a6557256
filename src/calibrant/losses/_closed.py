"""Losses of rows that know their gradient: one step of autograd instead of a dozen small ones."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from calibrant.losses._base import RowLoss, full_precision, ready


@dataclass(eq=False, repr=False, kw_only=True)
class ClosedLoss(RowLoss):
    """A loss of rows with the gradient in closed form, for speed.

    `rows` says the same in differentiable steps and is what every other use takes: no reduction, second derivatives,
    forward mode, torch.func, torch.compile.
    """

    def closed_form(self, logits: Tensor, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        """The sum of the losses, each times `share`, and its derivatives with respect to the logits, (B, k)."""
        raise TypeError(f"{type(self).__name__} does not say its derivatives: define closed_form")

    def forward(self, logits: Tensor, labels: Tensor, ids: Tensor | None = None) -> Tensor:
        if self.reduction == "none" or not _plain_backward(logits):
            return super().forward(logits, labels, ids)
        logits, labels = ready(logits, labels)
        with full_precision(logits):
            value: Tensor = _ClosedForm.apply(logits, labels, self)  # type: ignore[no-untyped-call]
        return value


class _ClosedForm(torch.autograd.Function):
    """Autograd function without forward mode or torch.func on purpose: they would miss the derivative of the slopes."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, loss: ClosedLoss) -> Tensor:
        ctx.loss = loss
        ctx.save_for_backward(logits, labels)
        total, ctx.slopes = loss.closed_form(logits, labels, 1 / len(labels) if loss.reduction == "mean" else 1.0)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if not torch.is_grad_enabled():
            return ctx.slopes * grad, None, None
        logits, labels = ctx.saved_tensors  # someone will differentiate again: slopes are numbers, so go by the rows
        value = RowLoss.forward(ctx.loss, logits, labels)
        return torch.autograd.grad(value, logits, grad, create_graph=True)[0], None, None


def _plain_backward(logits: Tensor) -> bool:
    """Whether only an ordinary backward pass can follow."""
    return (
        logits.requires_grad
        and torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
        and not _in_transform()
        and getattr(forward_ad, "_current_level", 0) < 0  # no forward mode around us
    )


# Neither has a public name. Without the level, rows are used; without this, torch.func raises an error for _ClosedForm.
_in_transform = getattr(torch._C, "_are_functorch_transforms_active", bool)
