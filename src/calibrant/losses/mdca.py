"""Multi-class difference of confidence and accuracy (MDCA)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.losses._base import Term


@dataclass(eq=False, repr=False, kw_only=True)
class MDCA(Term):
    """Mean over classes of |mean probability of the class - its share of the labels|.

    The means run over a batch, so small batches (below about 64) make it mostly noise.

    >>> z = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> float(MDCA()(z, torch.tensor([0, 0])))  # |1/2 - 1| and |1/2 - 0|
    0.5
    """

    title: ClassVar[str] = "Multi-class difference of confidence and accuracy"
    reference: ClassVar[str] = "Hebbalaguppe, Prakash, Madan, Arora, CVPR 2022"
    partner: ClassVar[str] = "focal:gamma=1"

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        ones = torch.ones_like(labels, dtype=logits.dtype)
        counts = logits.new_zeros(logits.shape[1]).scatter_add_(0, labels, ones)  # (k,); bincount waits for a GPU
        return (logits.softmax(1).sum(0) - counts).abs().sum() / logits.numel()
