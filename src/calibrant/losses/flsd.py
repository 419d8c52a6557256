"""Focal loss with a gamma for each sample, FLSD-53."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from calibrant.core.errors import InputError
from calibrant.core.torch.focal import focal_closed, focal_rows
from calibrant.core.torch.short_steps import number
from calibrant.losses._base import require
from calibrant.losses._closed import ClosedLoss


@dataclass(eq=False, repr=False, kw_only=True)
class FLSD(ClosedLoss):
    """Focal loss whose gamma is `low` for samples with p of the true class below `switch`, and `high` for others.

    The loss jumps where p crosses the switch; the choice of gamma has no gradient.

    >>> z = torch.tensor([[0.1, 0.9], [0.5, 0.5]]).log()
    >>> [round(float(row), 4) for row in FLSD(reduction="none")(z, torch.tensor([0, 0]))]  # 0.9^5 ln 10, 0.5^3 ln 2
    [1.3597, 0.0866]
    """

    low: float = 5.0
    high: float = 3.0
    switch: float = 0.2

    title: ClassVar[str] = "Sample-dependent focal loss (FLSD-53)"
    reference: ClassVar[str] = "Mukhoti, Kulharia, Sanyal, Golodetz, Torr, Dokania, NeurIPS 2020"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.low >= 0, "FLSD.low", expected="0 or more", got=self.low)
        require(self.high >= 0, "FLSD.high", expected="0 or more", got=self.high)
        require(0 < self.switch < 1, "FLSD.switch", expected="between 0 and 1", got=self.switch)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        below = logits.detach().log_softmax(1).gather(1, labels[:, None]).squeeze(1) < math.log(self.switch)
        return focal_rows(logits, labels, self.high + (self.low - self.high) * below.to(logits.dtype))

    def closed_form(self, logits: Tensor, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        log_probs, true, dtype = logits.log_softmax(1), labels.unsqueeze(1), logits.dtype
        log_p = log_probs.gather(1, true)
        below = log_p < number(math.log(self.switch), dtype)
        gamma = torch.where(below, number(self.low, dtype), number(self.high, dtype))
        return focal_closed(log_probs, log_p, true, gamma, share)


def best_gamma(p: float) -> float:
    """The gamma at which the focal gradient of a sample with this p equals that of cross-entropy: why 5 and 3.

    Below it samples pull harder than under cross-entropy, above it less.

    >>> round(best_gamma(0.2), 4), round(best_gamma(0.25), 4)
    (4.8506, 3.0702)
    """
    from scipy.special import lambertw

    if not 0 < p < 1:
        raise InputError("p", expected="a probability between 0 and 1", got=f"{p:g}", fix="give another value")
    a = (1 - p) / (p * math.log(p))
    q = (1 - p) ** (1 - a) * math.log1p(-p) / (p * math.log(p))
    return float(a + lambertw(-q, -1).real / math.log1p(-p))
