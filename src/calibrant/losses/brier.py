"""Brier loss: squared error of the probabilities."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.losses._base import RowLoss


@dataclass(eq=False, repr=False, kw_only=True)
class Brier(RowLoss):
    """Squared distance between the probabilities and the one-hot truth, summed over classes: a proper loss.

    Its gradient vanishes where the network is sure and wrong, so training from scratch can be slow to start.

    >>> z = torch.tensor([[0.9, 0.1]]).log()
    >>> round(float(Brier()(z, torch.tensor([0]))), 4)  # 0.1^2 + 0.1^2
    0.02
    """

    title: ClassVar[str] = "Brier loss"
    reference: ClassVar[str] = "Brier, Monthly Weather Review 1950"

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        true = labels[:, None]
        away = logits.softmax(1).scatter_add(1, true, torch.full_like(true, -1.0, dtype=logits.dtype))
        return (away * away).sum(1)
