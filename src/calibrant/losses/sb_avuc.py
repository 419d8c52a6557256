"""Soft accuracy versus uncertainty (SB-AvUC): no threshold, a soft one instead."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.losses._base import Term, require
from calibrant.losses._soft import entropy, top_label
from calibrant.losses.avuc import versus


@dataclass(eq=False, repr=False, kw_only=True)
class SBAvUC(Term):
    """`avuc` with a share of each sample certain and the rest uncertain: half and half at entropy kappa ln k.

    A low temperature is close to a hard threshold and gives gradients near it only. The weight is that of `avuc`.

    >>> z = torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log()  # as uncertain as can be, one right and one wrong
    >>> round(float(SBAvUC()(z, torch.tensor([0, 1]))), 3)  # bad / good = 1
    0.693
    """

    kappa: float = 0.5
    temperature: float = 1.0

    title: ClassVar[str] = "Soft accuracy versus uncertainty calibration"
    reference: ClassVar[str] = "Karandikar, Cain, Tran, Lakshminarayanan, Shlens, Mozer, Roelofs, NeurIPS 2021"
    weight: ClassVar[float] = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(0 < self.kappa < 1, "SBAvUC.kappa", expected="between 0 and 1", got=self.kappa)
        require(self.temperature > 0, "SBAvUC.temperature", expected="more than 0", got=self.temperature)

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        _, correct = top_label(logits, labels)
        unsure = entropy(logits)
        part = unsure / math.log(logits.shape[1])
        odds = torch.logit(part.clamp(1e-6, 1 - 1e-6)) - math.log(self.kappa / (1 - self.kappa))
        return versus(correct, torch.sigmoid(-odds / self.temperature), unsure, 1.0)
