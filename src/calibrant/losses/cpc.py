"""Calibrating by pairwise constraints (CPC): the true class against each other, the others against one another."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, logsigmoid, pad

from calibrant.core.errors import InputError
from calibrant.losses._base import require
from calibrant.losses._closed import ClosedLoss

CHUNK = 1 << 22  # differences of logits held at once


@dataclass(eq=False, repr=False, kw_only=True)
class CPC(ClosedLoss):
    """Cross-entropy + bdc * mean of -ln s(z_y - z_j) + bec * mean of -1/2 ln s(z_i - z_j) over pairs of wrong classes.

    s is the logistic function. The time grows with the square of the classes, the memory does not; the last part needs
    three classes.

    >>> z = torch.zeros(1, 3)
    >>> round(float(CPC()(z, torch.tensor([0]))), 4)  # ln 3 + ln 2 + ln(2) / 2
    2.1383
    """

    bdc: float = 1.0  # the true class against each other one
    bec: float = 1.0  # pairs of other classes

    title: ClassVar[str] = "Calibrating by pairwise constraints"
    reference: ClassVar[str] = "Cheng, Vasconcelos, CVPR 2022"
    least_classes: ClassVar[int] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.bdc >= 0, "CPC.bdc", expected="0 or more", got=self.bdc)
        require(self.bec >= 0, "CPC.bec", expected="0 or more", got=self.bec)

    def rows(self, logits: Tensor, labels: Tensor) -> Tensor:
        others, lead = self._others(logits, labels)
        rows = cross_entropy(logits, labels, reduction="none") - self.bdc * logsigmoid(lead).mean(1)
        return rows + self.bec * _pairs(others) if self.bec else rows

    def closed_form(self, logits: Tensor, labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
        others, lead = self._others(logits, labels)
        k, true = logits.shape[1], labels[:, None]
        part = torch.sigmoid(-lead) * (self.bdc / (k - 1))  # (B, k - 1): slopes of the others
        pull = part.sum(1, keepdim=True) + 1.0  # of the true class
        if self.bec:
            part += self.bec * _pair_slopes(others)
        slopes = pad(part, (0, 1))
        last = slopes.gather(1, true)  # the last class stood in for the true one
        slopes.scatter_(1, true, -pull)[:, -1:] += last
        return share * self.rows(logits, labels).sum(), share * (slopes + logits.softmax(1))

    def _others(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, k - 1) of the wrong classes, the last in the place of the true one, and the lead over them."""
        k, true = logits.shape[1], labels[:, None]
        if k < (3 if self.bec else 2):
            fix = "set bec=0, or take another loss"
            raise InputError("cpc", expected="three classes or more", got=f"{k}", fix=fix)
        here = torch.arange(k - 1, device=logits.device) == true
        others = torch.where(here, logits[:, -1:], logits[:, :-1])
        return others, logits.gather(1, true) - others


def _pairs(others: Tensor) -> Tensor:
    """Means (B,) of -1/2 ln s(z_i - z_j) over i != j, from logits (B, m)."""
    m = others.shape[1]
    sums = [-logsigmoid(part[:, :, None] - others[:, None, :]).sum((1, 2)) for part in _parts(others)]
    return (torch.stack(sums).sum(0) - m * math.log(2)) / (2 * m * (m - 1))  # without i = j


def _pair_slopes(others: Tensor) -> Tensor:
    m = others.shape[1]
    sums = [torch.tanh((part[:, :, None] - others[:, None, :]) / 2).sum(2) for part in _parts(others)]
    return torch.cat(sums, 1) / (2 * m * (m - 1))


def _parts(others: Tensor) -> tuple[Tensor, ...]:
    return torch.split(others, max(1, CHUNK // max(1, others.numel())), dim=1)
