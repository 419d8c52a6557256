"""Soft-binned expected calibration error (SB-ECE)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.losses._base import Term, require
from calibrant.losses._soft import root, top_label


@dataclass(eq=False, repr=False, kw_only=True)
class SoftBinnedECE(Term):
    """Expected calibration error of a batch in the p-norm, with samples shared between the nearest bins.

    Accuracy is hard, so gradients flow through the confidence alone; the best weight is between 0.01 and 10.

    >>> z = torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()
    >>> round(float(SoftBinnedECE(bins=1)(z, torch.tensor([0, 1]))), 4)  # one bin: |0.75 - 0.5|
    0.25
    """

    p: float = 2.0
    bins: int = 15
    temperature: float = 0.01

    title: ClassVar[str] = "Soft-binned expected calibration error"
    reference: ClassVar[str] = "Karandikar, Cain, Tran, Lakshminarayanan, Shlens, Mozer, Roelofs, NeurIPS 2021"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.p >= 1, "SoftBinnedECE.p", expected="1 or more", got=self.p)
        require(self.bins >= 1, "SoftBinnedECE.bins", expected="1 or more", got=self.bins)
        require(self.temperature > 0, "SoftBinnedECE.temperature", expected="more than 0", got=self.temperature)

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        confidence, correct = top_label(logits, labels)
        members = self._members(confidence)
        mass = members.sum(0)
        gap = ((confidence - correct) @ members / mass.clamp_min(1e-5)).abs()
        return root((mass / len(labels) * gap**self.p).sum(), self.p)

    def _members(self, confidence: Tensor) -> Tensor:
        """The share of each sample in each bin, (B, bins)."""
        j = torch.arange(self.bins, device=confidence.device, dtype=confidence.dtype)
        centres = (j + 0.5) / self.bins
        return ((confidence[:, None] - centres) ** 2 / -self.temperature).softmax(1)
