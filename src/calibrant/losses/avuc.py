"""Accuracy versus uncertainty (AvUC): sure when right, unsure when wrong."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.losses._base import Term
from calibrant.losses._soft import entropy, top_label


@dataclass(eq=False, repr=False, kw_only=True)
class AvUC(Term):
    """ln(1 + bad / good): good are right-and-certain and wrong-and-uncertain samples, by an entropy threshold.

    The threshold is 1 in the first epoch, and then midway between the mean entropies of the right and of the wrong
    samples of the last epoch: `start_epoch` moves it, and it stays where one of the two had no samples.

    >>> z = torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()  # entropies 0.325 and 0.673: both certain
    >>> round(float(AvUC()(z, torch.tensor([0, 1]))), 4)  # ln(1 + 0.4 (1 - tanh 0.673) / (0.9 (1 - tanh 0.325)))
    0.2372
    """

    title: ClassVar[str] = "Accuracy versus uncertainty calibration"
    reference: ClassVar[str] = "Krishnan, Tickoo, NeurIPS 2020"
    weight: ClassVar[float] = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.threshold: Tensor
        self.seen: Tensor
        self.register_buffer("threshold", torch.tensor(1.0))
        self.register_buffer("seen", torch.zeros(2, 2))  # sum of entropies and count, of the wrong and of the right

    def start(self, samples: int, epochs: int) -> None:
        self.threshold.fill_(1.0)
        self.seen.zero_()

    def start_epoch(self, epoch: int) -> None:
        total, count = self.seen.unbind(1)
        midway = (total / count.clamp_min(1.0)).mean()
        self.threshold.copy_(torch.where(count.amin() > 0, midway, self.threshold))
        self.seen.zero_()

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        confidence, correct = top_label(logits, labels)
        unsure = entropy(logits)
        certain = (unsure <= self.threshold).to(unsure.dtype)
        return versus(correct, certain, unsure, torch.where(correct > 0, confidence, 1 - confidence))

    @torch.no_grad()
    def remember(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> None:
        _, correct = top_label(logits, labels)
        unsure = entropy(logits)
        groups = torch.stack([1 - correct, correct])  # (2, B)
        self.seen += torch.stack([groups @ unsure, groups.sum(1)], 1)


def versus(correct: Tensor, certain: Tensor, unsure: Tensor, weight: Tensor | float) -> Tensor:
    """ln(1 + bad / good) of a batch; all arguments are (B,), `certain` and `correct` from 0 to 1."""
    t = torch.tanh(unsure)
    sure, doubtful = weight * certain * (1 - t), weight * (1 - certain) * t
    good = torch.where(correct > 0, sure, doubtful).sum()
    bad = torch.where(correct > 0, doubtful, sure).sum()
    return torch.log1p(bad / good.clamp_min(1e-10))
