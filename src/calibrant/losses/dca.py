"""Difference of confidence and accuracy (DCA)."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from calibrant.losses._base import Term
from calibrant.losses._soft import top_label


@dataclass(eq=False, repr=False, kw_only=True)
class DCA(Term):
    """|mean confidence - accuracy| of a batch.

    Over- and underconfident samples cancel: it cannot see more than the mean.

    >>> z = torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()
    >>> round(float(DCA()(z, torch.tensor([0, 1]))), 4)  # |0.75 - 0.5|
    0.25
    """

    title: ClassVar[str] = "Difference of confidence and accuracy"
    reference: ClassVar[str] = "Liang, Zhang, Wang, Jacobs, BMVC 2020"

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        confidence, correct = top_label(logits, labels)
        return (confidence - correct).mean().abs()
