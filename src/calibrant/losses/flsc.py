"""Focal loss with a gamma that falls in steps during training, FLSc-531."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.core.torch.focal import focal_closed, focal_rows
from calibrant.losses._base import require
from calibrant.losses._closed import ClosedLoss

PAPER_EPOCHS = 350


@dataclass(eq=False, repr=False, kw_only=True)
class FLSc(ClosedLoss):
    """Focal loss with gamma `first`, then `second`, then `third`; `early` and `late` say when, in parts of training.

    Its paper switches after 100 and 250 of 350 epochs; without `start` and `start_epoch` it stays at the first gamma.

    >>> loss, z = FLSc(), torch.tensor([[0.0, 0.0]])
    >>> loss.start(samples=1, epochs=7)
    >>> loss.start_epoch(5)
    >>> round(float(loss(z, torch.tensor([0]))), 4)  # five sevenths are done, so gamma = 1: ln(2) / 2
    0.3466
    """

    first: float = 5.0
    second: float = 3.0
    third: float = 1.0
    early: float = 100 / PAPER_EPOCHS
    late: float = 250 / PAPER_EPOCHS

    title: ClassVar[str] = "Scheduled focal loss (FLSc-531)"
    reference: ClassVar[str] = "Mukhoti, Kulharia, Sanyal, Golodetz, Torr, Dokania, NeurIPS 2020"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("first", "second", "third"):
            require(getattr(self, name) >= 0, f"FLSc.{name}", expected="0 or more", got=getattr(self, name))
        require(0 <= self.early <= 1, "FLSc.early", expected="a part of training, 0 to 1", got=self.early)
        require(self.early <= self.late <= 1, "FLSc.late", expected="from early to 1", got=self.late)
        self.epochs = PAPER_EPOCHS
        self.gamma: Tensor
        self.register_buffer("gamma", torch.tensor(float(self.first)))

    def start(self, samples: int, epochs: int) -> None:
        self.epochs = epochs
        self.start_epoch(0)

    def start_epoch(self, epoch: int) -> None:
        done = epoch / self.epochs  # exact where the schedule is: 100 / 350 rounds as 2 / 7 does
        self.gamma.fill_(self.first if done < self.early else self.second if done < self.late else self.third)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        return focal_rows(logits, labels, self.gamma)

    def closed_form(self, logits: Tensor, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        log_probs, true = logits.log_softmax(1), labels.unsqueeze(1)
        return focal_closed(log_probs, log_probs.gather(1, true), true, self.gamma, share)
