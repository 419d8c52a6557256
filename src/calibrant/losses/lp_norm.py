"""Cross-entropy with a norm of the logits as a penalty."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import cross_entropy

from calibrant.losses._base import RowLoss, require
from calibrant.losses._soft import root


@dataclass(eq=False, repr=False, kw_only=True)
class LpNorm(RowLoss):
    """Cross-entropy + alpha (sum of |logit|^p)^(1/p).

    The only loss here that sees a constant added to a row of logits; good values of alpha shrink with the classes.

    >>> z = torch.tensor([[3.0, -1.0]])
    >>> both, ce = LpNorm(alpha=0.5)(z, torch.tensor([0])), LpNorm(alpha=0)(z, torch.tensor([0]))
    >>> round(float(both - ce), 4)  # 0.5 (3 + 1)
    2.0
    """

    alpha: float = 0.01
    p: float = 1.0

    title: ClassVar[str] = "Cross-entropy with an Lp norm of the logits"
    reference: ClassVar[str] = "Joo, Chung, 2020"
    sees_constants: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.alpha >= 0, "LpNorm.alpha", expected="0 or more", got=self.alpha)
        require(self.p >= 1, "LpNorm.p", expected="1 or more", got=self.p)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(logits, labels, reduction="none") + self.alpha * self._norm(logits)

    def _norm(self, logits: Tensor) -> Tensor:
        if self.p == 1:
            return logits.abs().sum(1)
        # Powers of numbers up to 1 cannot overflow; the scale cancels, so it needs no gradient.
        scale = logits.detach().abs().amax(1, keepdim=True).clamp_min(1.0)
        return scale.squeeze(1) * root((logits / scale).abs().pow(self.p).sum(1), self.p)
