"""(1 - p)^gamma times cross-entropy: what the focal losses share."""

import torch
from torch import Tensor


def focal_rows(logits: Tensor, labels: Tensor, gamma: float | Tensor) -> Tensor:
    """Focal losses (B,) of logits (B, k); gamma is a number, or a tensor that broadcasts with (B,).

    Differentiable twice in logits and gamma, forwards and backwards, and finite however sure the network is.
    """
    log_p = logits.log_softmax(1).gather(1, labels[:, None]).squeeze(1)  # (B,)
    return -(_doubt(log_p) ** gamma) * log_p


def focal_closed(log_probs: Tensor, log_p: Tensor, labels: Tensor, gamma: float | Tensor) -> tuple[Tensor, Tensor]:
    """Losses (B, 1) and derivatives g (p - onehot), g = u^gamma - gamma p u^(gamma - 1) ln p; uses log_probs up."""
    doubt = _doubt(log_p)
    power = doubt**gamma
    loss = power * log_p
    bend = log_p.exp().mul_(loss).mul_(gamma).div_(doubt)
    g = power - bend
    slopes = log_probs.exp_().mul_(g).scatter_add_(1, labels[:, None], g.neg_())
    return loss.neg_(), slopes


def _doubt(log_p: Tensor) -> Tensor:
    """u = 1 - p, never so small that a power of it has no derivative."""
    return torch.expm1(log_p).neg().clamp_min(1e-12 if log_p.dtype == torch.float64 else 1e-7)
