"""Fast operations for losses in closed form: on a batch, each operation costs more than its arithmetic."""

import math
from functools import lru_cache

import torch
from torch import Tensor

LN2 = math.log(2.0)


@lru_cache
def number(value: float, dtype: torch.dtype) -> Tensor:
    """The number as a tensor without dimensions, cached: making one takes longer than using it. Good on every device.

    Not for steps that are differentiated: those may run inside a transform, and what is made there must not be kept.
    """
    with torch.inference_mode(False):
        return torch.tensor(value, dtype=dtype, device="cpu")


def to_bits(log_probs: Tensor) -> Tensor:
    """Convert logarithms to base 2 in place: powers of 2 take a third of the time of those of e."""
    return log_probs.mul_(number(1 / LN2, log_probs.dtype))


def through_log_softmax(slopes: Tensor, log_probs: Tensor) -> Tensor:
    """Derivatives by logits (B, k) from those by log-probabilities, s: s - p sum(s).

    The step that torch's own backward pass takes; it has no public name.

    >>> through_log_softmax(torch.tensor([[-1.0, 0.0]]), torch.tensor([[0.5, 0.5]]).log())  # p - (1, 0)
    tensor([[-0.5000,  0.5000]])
    """
    by_logits: Tensor = torch._log_softmax_backward_data(slopes, log_probs, 1, log_probs.dtype)
    return by_logits
