"""Maximum mean calibration error of a batch, right and wrong predictions weighted alike."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from calibrant.losses._base import Term, require
from calibrant.losses._soft import gaps, top_label


@dataclass(eq=False, repr=False, kw_only=True)
class MMCEWeighted(Term):
    """Root of the kernel sum of residuals, each divided by the number of right (or of wrong) predictions in the batch.

    0 in a batch that is all right or all wrong. `form=code` divides by that number twice, as published code does.

    >>> z = torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()
    >>> round(float(MMCEWeighted()(z, torch.tensor([0, 1]))), 4)  # one right, one wrong: twice the plain root
    0.5597
    """

    width: float = 0.4
    form: Literal["formula", "code"] = "formula"

    title: ClassVar[str] = "Maximum mean calibration error, weighted"
    reference: ClassVar[str] = "Kumar, Sarawagi, Jain, ICML 2018"
    weight: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.width > 0, "MMCEWeighted.width", expected="more than 0", got=self.width)

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        confidence, correct = top_label(logits, labels)
        right = correct.sum()
        wrong = len(labels) - right
        group = torch.where(correct > 0, right, wrong)  # (B,), at least 1: the sample itself
        pairs = group[:, None] * group  # (B, B)
        residual = correct - confidence
        kernel = torch.exp(gaps(confidence).abs() / -self.width)
        # The published code takes means, then divides again by numbers of pairs with an epsilon.
        scale = pairs if self.form == "formula" else pairs * (pairs + 1e-5)
        squared = (residual[:, None] * residual * kernel / scale).sum()
        return torch.sqrt(squared.clamp_min(0.0) + 1e-10) * (right * wrong > 0)
