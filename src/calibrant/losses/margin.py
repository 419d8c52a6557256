"""Margin-based label smoothing (MbLS)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy, relu

from calibrant.losses._base import RowLoss, require


@dataclass(eq=False, repr=False, kw_only=True)
class Margin(RowLoss):
    """Cross-entropy + alpha * mean over classes of how far they are more than `margin` below the largest logit.

    With margin = 0 every distance costs, as under label smoothing; 10 does nothing until logits differ by more.

    >>> z = torch.tensor([[4.0, 0.0]])
    >>> both, ce = Margin(alpha=0.1, margin=1)(z, torch.tensor([0])), Margin(alpha=0)(z, torch.tensor([0]))
    >>> round(float(both - ce), 4)  # 0.1 (0 + 3) / 2
    0.15
    """

    alpha: float = 0.1
    margin: float = 10.0

    title: ClassVar[str] = "Margin-based label smoothing (MbLS)"
    reference: ClassVar[str] = "Liu, Ben Ayed, Galdran, Dolz, CVPR 2022"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.alpha >= 0, "Margin.alpha", expected="0 or more", got=self.alpha)
        require(self.margin >= 0, "Margin.margin", expected="0 or more", got=self.margin)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        below = logits.amax(1, keepdim=True) - logits
        return cross_entropy(logits, labels, reduction="none") + self.alpha * relu(below - self.margin).mean(1)
