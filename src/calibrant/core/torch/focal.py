"""(1 - p)^gamma times cross-entropy: what the focal losses share."""

import torch
from torch import Tensor

from calibrant.core.torch.short_steps import number, to_bits


def focal_rows(logits: Tensor, labels: Tensor, gamma: float | Tensor) -> Tensor:
    """Focal losses (B,) of logits (B, k); gamma is a number, or a tensor that broadcasts with (B,).

    Differentiable twice in logits and gamma, forwards and backwards, and finite however sure the network is.
    """
    log_p = logits.log_softmax(1).gather(1, labels[:, None]).squeeze(1)  # (B,)
    floor = 1e-12 if log_p.dtype == torch.float64 else 1e-7  # a power of 0 below 1 has no derivative
    return -((-torch.expm1(log_p)).clamp_min(floor) ** gamma) * log_p


def focal_closed(
    log_probs: Tensor, log_p: Tensor, true: Tensor, gamma: float | Tensor, share: float
) -> tuple[Tensor, Tensor]:
    """Closed form of the focal loss and its gradient g (p - onehot), g = u^gamma - gamma p u^(gamma - 1) ln p.

    Overwrites `log_probs`.

    Few steps, because each takes longer than its arithmetic.
    """
    dtype, off = log_p.dtype, torch.expm1(log_p)  # p - 1
    doubt = number(1e-30, dtype) - off  # u, and something to divide by
    power = (doubt**gamma).mul_(number(share, dtype))
    gain = power * log_p
    total = gain.sum().neg_()
    bend = gain.addcmul_(gain, off)  # gain times p
    if isinstance(gamma, Tensor):
        g = power.addcmul_(bend.div_(doubt), gamma, value=-1)
    else:
        g = power.addcdiv_(bend, doubt, value=-gamma)
    return total, to_bits(log_probs).exp2_().scatter_(1, true, off).mul_(g)
