"""Label smoothing: a little of the truth for every class."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from calibrant.core.torch.short_steps import number, through_log_softmax
from calibrant.losses._base import require
from calibrant.losses._closed import ClosedLoss


@dataclass(eq=False, repr=False, kw_only=True)
class LabelSmoothing(ClosedLoss):
    """Cross-entropy with labels that give a share epsilon away: to all classes, or to the others only.

    Confidences end near 1 - epsilon whether right or wrong, which costs the power to tell errors.

    >>> z = torch.tensor([[0.0, 0.0, 0.0]])
    >>> round(float(LabelSmoothing(epsilon=0.3)(z, torch.tensor([0])).exp()), 4)  # any share of equal numbers
    3.0
    """

    epsilon: float = 0.05
    form: Literal["uniform", "others"] = "uniform"

    title: ClassVar[str] = "Label smoothing"
    reference: ClassVar[str] = "Szegedy, Vanhoucke, Ioffe, Shlens, Wojna, CVPR 2016"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 <= self.epsilon < 1, "LabelSmoothing.epsilon", expected="0 or more and below 1", got=self.epsilon)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        return self._mix(logits.log_softmax(1), labels[:, None]).squeeze(1).neg()

    def closed_form(self, logits: Tensor, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        log_probs, true, uniform = logits.log_softmax(1), labels.unsqueeze(1), self._uniform_share(logits)
        class_share = share * uniform / logits.shape[1]
        truth = torch.full_like(log_probs, -class_share).scatter_(1, true, share * (uniform - 1.0) - class_share)
        gains = self._mix(log_probs, true)
        return gains.sum().mul_(number(-share, logits.dtype)), through_log_softmax(truth, log_probs)

    def _mix(self, log_probs: Tensor, true: Tensor) -> Tensor:
        return torch.lerp(log_probs.gather(1, true), log_probs.mean(1, keepdim=True), self._uniform_share(log_probs))

    def _uniform_share(self, logits: Tensor) -> float:
        """The share of all classes: epsilon to the others is k / (k - 1) epsilon to all, of which one gets 1 / k."""
        k = logits.shape[1]
        return self.epsilon if self.form == "uniform" else self.epsilon * k / (k - 1)
