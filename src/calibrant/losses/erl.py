"""Cross-entropy with a reward for entropy: the confidence penalty."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.losses._base import require
from calibrant.losses._closed import ClosedLoss
from calibrant.losses._soft import entropy


@dataclass(eq=False, repr=False, kw_only=True)
class ERL(ClosedLoss):
    """Cross-entropy - beta * entropy of the probabilities.

    It lowers the confidence of wrong and right predictions alike, and with it the power to tell them apart.

    >>> z = torch.tensor([[0.0, 0.0]])
    >>> round(float(ERL(beta=0.1)(z, torch.tensor([0]))), 4)  # (1 - 0.1) ln 2
    0.6238
    """

    beta: float = 0.1

    title: ClassVar[str] = "Entropy-regularised loss (confidence penalty)"
    reference: ClassVar[str] = "Pereyra, Tucker, Chorowski, Kaiser, Hinton, ICLR workshop 2017"
    may_be_negative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.beta >= 0, "ERL.beta", expected="0 or more", got=self.beta)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(logits, labels, reduction="none") - self.beta * entropy(logits)

    def closed_form(self, logits: Tensor, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        log_probs, true = logits.log_softmax(1), labels.unsqueeze(1)
        probs, log_p = log_probs.exp(), log_probs.gather(1, true)
        parts = log_probs.mul_(probs)
        order = parts.sum(1, keepdim=True)  # minus the entropy
        slopes = torch.add(probs, parts, alpha=self.beta).addcmul_(probs, order, value=-self.beta)
        total = torch.sub(log_p, order, alpha=self.beta).sum().mul_(-share)
        return total, slopes.scatter_add_(1, true, torch.full_like(order, -1.0)).mul_(share)
