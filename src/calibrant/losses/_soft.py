"""Confidence, entropy and accuracy of a batch as torch sees them: what the terms share."""

import torch
from torch import Tensor


def top_label(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Confidence (B,) and correctness (B,), 1 or 0; gradients flow through the confidence only."""
    highest, predicted = logits.log_softmax(1).max(1)
    return highest.exp(), (predicted == labels).to(logits.dtype)


def entropy(logits: Tensor) -> Tensor:
    """Entropy of each row in nats, (B,)."""
    log_probs = logits.log_softmax(1)
    return -(log_probs.exp() * log_probs).sum(1)


def soft_accuracy(logits: Tensor, labels: Tensor, slope: float) -> Tensor:
    """Soft accuracy (B,): about 1 where the true class comes first and 0 where another does; sharper with the slope."""
    probs = logits.softmax(1)
    true = probs.gather(1, labels[:, None])
    rank = 0.5 + torch.sigmoid(slope * (probs - true)).sum(1)  # the true class itself adds one half
    return (2.0 - rank).clamp_min(0.0)


def gaps(confidence: Tensor) -> Tensor:
    """Differences of all pairs of confidences, (B, B)."""
    return confidence[:, None] - confidence


def root(sums: Tensor, p: float) -> Tensor:
    """The root sums^(1/p), with a derivative at 0."""
    return sums if p == 1 else (sums + 1e-12) ** (1 / p)
