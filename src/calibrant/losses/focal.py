"""Focal loss: cross-entropy that cares less about samples already learnt."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from calibrant.core.torch.focal import focal_closed, focal_rows
from calibrant.losses._base import require
from calibrant.losses._closed import ClosedLoss


@dataclass(eq=False, repr=False, kw_only=True)
class Focal(ClosedLoss):
    """-(1 - p)^gamma ln p of the true class; gamma = 0 is cross-entropy.

    For gamma of 1 and more it bounds cross-entropy - gamma * entropy from above, so a large gamma ends underconfident.

    >>> z = torch.tensor([[0.0, 0.0]])
    >>> round(float(Focal(gamma=2)(z, torch.tensor([0]))), 4)  # ln(2) / 4
    0.1733
    """

    gamma: float = 3.0

    title: ClassVar[str] = "Focal loss"
    reference: ClassVar[str] = "Lin, Goyal, Girshick, He, Dollar, ICCV 2017"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.gamma >= 0, "Focal.gamma", expected="0 or more", got=self.gamma)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        return focal_rows(logits, labels, self.gamma)

    def closed_form(self, logits: Tensor, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        log_probs, true = logits.log_softmax(1), labels.unsqueeze(1)
        return focal_closed(log_probs, log_probs.gather(1, true), true, self.gamma, share)
