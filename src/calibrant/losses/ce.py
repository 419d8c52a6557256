"""Cross-entropy: what everyone trains with."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.losses._base import RowLoss


@dataclass(eq=False, repr=False, kw_only=True)
class CE(RowLoss):
    """-ln p of the true class.

    It keeps falling after every training sample is classified correctly, by growing confidence: the road to
    overconfidence.

    >>> float(CE()(torch.tensor([[0.0, 0.0]]), torch.tensor([0])).exp())  # p = 1/2
    2.0
    """

    title: ClassVar[str] = "Cross-entropy"
    reference: ClassVar[str] = "Good, JRSS B 1952"

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(logits, labels, reduction="none")
