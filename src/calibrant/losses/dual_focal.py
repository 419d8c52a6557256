"""Dual focal loss: the margin to the runner-up counts too."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.losses._base import RowLoss, require


@dataclass(eq=False, repr=False, kw_only=True)
class DualFocal(RowLoss):
    """-(1 - p + q)^gamma ln p, p of the true class and q the largest probability below p.

    The loss jumps where another class overtakes the true one; choose gamma on validation data.

    >>> z = torch.tensor([[0.5, 0.3, 0.2]]).log()
    >>> round(float(DualFocal(gamma=1)(z, torch.tensor([0]))), 4)  # (1 - 0.5 + 0.3) ln 2
    0.5545
    """

    gamma: float = 5.0

    title: ClassVar[str] = "Dual focal loss"
    reference: ClassVar[str] = "Tao, Dong, Xu, ICML 2023"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.gamma >= 0, "DualFocal.gamma", expected="0 or more", got=self.gamma)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        log_probs = logits.log_softmax(1)
        true = log_probs.gather(1, labels[:, None])
        runner_up = log_probs.masked_fill(log_probs >= true, -torch.inf).amax(1).exp()
        log_p = true.squeeze(1)
        doubt = runner_up - torch.expm1(log_p)
        return -(doubt.clamp_min(1e-12 if logits.dtype == torch.float64 else 1e-7) ** self.gamma) * log_p
