"""Differentiable expected calibration error (DECE): soft bins, soft accuracy."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.losses._base import Term, require
from calibrant.losses._soft import soft_accuracy, top_label


@dataclass(eq=False, repr=False, kw_only=True)
class DECE(Term):
    """Expected calibration error of a batch with samples shared between bins, and accuracy from a soft rank.

    In batches below about 64 most bins hold one sample or none, and the term is mostly noise.

    >>> z = torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()
    >>> round(float(DECE(bins=1)(z, torch.tensor([0, 1]))), 4)  # one bin, hardly soft: |0.75 - 0.5|
    0.25
    """

    bins: int = 15
    temperature: float = 0.01  # of the bins: lower is harder
    slope: float = 100.0  # of the rank: higher is harder

    title: ClassVar[str] = "Differentiable expected calibration error"
    reference: ClassVar[str] = "Bohdal, Yang, Hospedales, TMLR 2023"
    weight: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.bins >= 1, "DECE.bins", expected="1 or more", got=self.bins)
        require(self.temperature > 0, "DECE.temperature", expected="more than 0", got=self.temperature)
        require(self.slope > 0, "DECE.slope", expected="more than 0", got=self.slope)

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        confidence, _ = top_label(logits, labels)
        excess = confidence - soft_accuracy(logits, labels, self.slope)
        # A bin counts |its accuracy - its confidence| by its mass: the mass cancels.
        return (excess @ self._members(confidence)).abs().sum() / len(labels)

    def _members(self, confidence: Tensor) -> Tensor:
        """The share of each sample in each bin, (B, bins)."""
        j = torch.arange(1, self.bins + 1, device=confidence.device, dtype=confidence.dtype)
        scores = j * confidence[:, None] - j * (j - 1) / (2 * self.bins)  # neighbours cross on the edges
        soft = (scores / self.temperature).softmax(1) + 1e-6
        return soft / (1 + (self.bins + 1) * 1e-6)  # not quite their sum: as in the published code
