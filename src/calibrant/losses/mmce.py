"""Maximum mean calibration error of a batch."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.losses._base import Term, require
from calibrant.losses._soft import gaps, top_label


@dataclass(eq=False, repr=False, kw_only=True)
class MMCE(Term):
    """Mean of r_i r_j exp(-|c_i - c_j| / width) over all pairs of a batch, r = correct - confidence, without the root.

    The diagonal is included, so a batch of B calibrated samples still gives about 1 / B. The weight of 2 is that of
    published scripts for `mmce_weighted`; no weight is on record for this form.

    >>> z = torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()
    >>> round(float(MMCE()(z, torch.tensor([0, 1]))), 4)  # r = 0.1, -0.6: (0.01 + 0.36 - 2 * 0.06 * exp(-0.75)) / 4
    0.0783
    """

    width: float = 0.4

    title: ClassVar[str] = "Maximum mean calibration error, squared"
    reference: ClassVar[str] = "Kumar, Sarawagi, Jain, ICML 2018"
    weight: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.width > 0, "MMCE.width", expected="more than 0", got=self.width)

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        confidence, correct = top_label(logits, labels)
        residual = (correct - confidence) / len(labels)
        return residual @ torch.exp(gaps(confidence).abs() / -self.width) @ residual
