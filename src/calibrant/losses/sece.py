"""SECE of a batch: local accuracy by a Gaussian kernel instead of bins."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from calibrant.losses._base import Term, require
from calibrant.losses._soft import gaps, soft_accuracy, top_label


@dataclass(eq=False, repr=False, kw_only=True)
class SECE(Term):
    """Gap between each confidence of a batch and the kernel-weighted accuracy around it.

    A sample without neighbours within a few h counts its own |a - c|, so small batches pull every confidence to 0 or
    1. `form=eq5` is the formula as printed in the paper: not normalised, it grows with the batch.

    >>> z = torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()
    >>> round(float(SECE()(z, torch.tensor([0, 1]))), 3)  # no neighbours: (|1 - 0.9| + |0 - 0.6|) / 2
    0.35
    """

    h: float = 0.01
    form: Literal["normalised", "eq5"] = "normalised"
    accuracy: Literal["soft", "hard"] = "soft"
    leave_one_out: bool = False
    slope: float = 100.0  # of the soft accuracy: higher is harder

    title: ClassVar[str] = "Smooth expected calibration error (SECE)"
    reference: ClassVar[str] = "Wang, Golebiowski, TMLR 2024 (gamma-Net)"
    weight: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.h >= 1e-4, "SECE.h", expected="0.0001 or more", got=self.h)
        require(self.slope > 0, "SECE.slope", expected="more than 0", got=self.slope)

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        confidence, hard = top_label(logits, labels)
        accuracy = hard if self.accuracy == "hard" else soft_accuracy(logits, labels, self.slope)
        kernel = torch.exp(-0.5 * (gaps(confidence) / self.h) ** 2)  # (B, B)
        if self.form == "eq5":
            return (accuracy * kernel.sum(1) - confidence).abs().mean()
        if self.leave_one_out:
            kernel = kernel - torch.diag_embed(kernel.diagonal())
            alone = (kernel.sum(1) < 1e-12).to(kernel.dtype)
            kernel = kernel + torch.diag_embed(alone)  # nothing left means the sample itself
        return (kernel @ accuracy / kernel.sum(1) - confidence).abs().mean()
