"""Cross-entropy with a reward for entropy: the confidence penalty."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.core.torch.short_steps import LN2, number, to_bits
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
        """The closed form, with h minus the entropy: beta h - ln p, and p (1 - beta h + beta ln p) - onehot."""
        bits, true, dtype = to_bits(logits.log_softmax(1)), labels.unsqueeze(1), logits.dtype
        slope = share * self.beta * LN2  # by a bit
        probs, bit = bits.exp2(), bits.gather(1, true)
        order = (probs * bits).sum(1, keepdim=True)  # h, in bits
        slopes = torch.sub(number(share, dtype), order, alpha=slope).add(bits, alpha=slope).mul_(probs)
        total = bit.sub_(order, alpha=self.beta).sum().mul_(number(-share * LN2, dtype))
        return total, slopes.scatter_(1, true, -share, reduce="add")
