"""Correctness ranking loss (CRL): confidence should rank samples as often as they were right."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from calibrant.core.errors import InputError
from calibrant.losses._base import Term
from calibrant.losses._soft import entropy


@dataclass(eq=False, repr=False, kw_only=True)
class CRL(Term):
    """Hinge on neighbours of a batch: the one right in more epochs so far should be the more confident, by as much.

    It needs `start`, and the `ids` of the samples in every batch; in the first epoch, without a past, it is 0.

    >>> loss, z = CRL(), torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()
    >>> loss.start(samples=2, epochs=3)
    >>> for epoch in range(2):
    ...     loss.start_epoch(epoch)
    ...     value = loss(z, torch.tensor([0, 1]), ids=torch.tensor([0, 1]))
    >>> round(float(value), 4)  # right in 1 and in 0 of 1 epochs, confidences 0.9 and 0.6: 1 - 0.3
    0.7
    """

    score: Literal["max", "margin", "entropy"] = "max"

    title: ClassVar[str] = "Correctness ranking loss"
    reference: ClassVar[str] = "Moon, Kim, Shin, Hwang, ICML 2020"
    sees_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.counts: Tensor
        self.epoch: Tensor
        self.register_buffer("counts", torch.zeros(0))  # (samples,): epochs in which each was right
        self.register_buffer("epoch", torch.tensor(0.0))  # how many are complete

    def start(self, samples: int, epochs: int) -> None:
        self.counts = self.counts.new_zeros(samples)
        self.epoch.zero_()

    def start_epoch(self, epoch: int) -> None:
        self.epoch.fill_(epoch)

    def value(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> Tensor:
        counts = self.counts[self._require_ids(ids)].to(logits.dtype)
        least = self.counts.amin().to(logits.dtype)
        past = (counts - least) / (self.epoch - least).clamp_min(1.0)  # (B,); no difference to divide if it is 0
        score = self._score(logits)
        lead, more = score - score.roll(-1), past - past.roll(-1)
        return torch.where(more == 0, 0.0, torch.relu(more.abs() - more.sign() * lead)).mean()

    @torch.no_grad()
    def remember(self, logits: Tensor, labels: Tensor, ids: Tensor | None) -> None:
        correct = (logits.argmax(1) == labels).to(self.counts.dtype)
        self.counts.index_add_(0, self._require_ids(ids), correct)

    def _score(self, logits: Tensor) -> Tensor:
        if self.score == "entropy":
            return -entropy(logits) / math.log(logits.shape[1])
        first, second = logits.softmax(1).topk(2).values.unbind(1)
        return first - second if self.score == "margin" else first

    def _require_ids(self, ids: Tensor | None) -> Tensor:
        if len(self.counts) == 0:
            raise InputError("crl", expected="a start", got="a batch", fix="call loss.start(samples, epochs) first")
        if ids is None:
            fix = "call loss(logits, labels, ids) with the number of each training sample"
            raise InputError("crl", expected="ids of the samples", got="none", fix=fix)
        return ids.to(self.counts.device)

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: object) -> None:
        saved = state.get(f"{prefix}counts")
        if saved is not None:  # as many samples as were saved, whatever `start` was told
            self.counts = self.counts.new_zeros(saved.shape)
        super()._load_from_state_dict(state, prefix, *rest)
