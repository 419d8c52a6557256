"""Batches that methods around a trained network look at, in their own order or by row."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError

Loader = Iterable[Sequence[Any]]  # batches of inputs, labels and whatever else; gone through again and again

NO_ITERATOR = "give a list of batches or a DataLoader, which can be gone through again, not an iterator"


def pairs(loader: Loader, network: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs in the network's number type and labels, both where the network is."""
    like = next(network.parameters(), torch.zeros(()))
    for batch in loader:
        x, labels = batch[0], batch[1]
        kind = like.dtype if x.is_floating_point() else x.dtype
        yield x.to(like.device, kind), labels.to(like.device).long()


@dataclass(frozen=True)
class NumberedRows:
    """Rows of a loader by number, in batches: for methods that shuffle or leave rows out.

    >>> batches = [(torch.tensor([[1.0], [2.0]]), torch.tensor([0, 1])), (torch.tensor([[3.0]]), torch.tensor([0]))]
    >>> rows = NumberedRows.of(batches, size=2)
    >>> [x.flatten().tolist() for x, _ in rows.take(np.array([2, 0, 1]))]
    [[3.0, 1.0], [2.0]]
    """

    pick: Callable[[Ints], tuple[Tensor, Tensor]]
    numbers: Ints
    size: int  # of a batch

    @classmethod
    def of(cls, loader: Loader, size: int) -> "NumberedRows":
        """Number the rows of a loader; one without `pick` and `count` is held in memory."""
        if hasattr(loader, "pick") and hasattr(loader, "count"):
            return cls(loader.pick, np.arange(loader.count()), size)
        batches = [(batch[0], batch[1]) for batch in loader]
        if not batches:
            raise InputError("loader", expected="batches in every pass", got="none in this one", fix=NO_ITERATOR)
        x, labels = (torch.cat(column) for column in zip(*batches, strict=True))
        return cls(
            lambda numbers: (x[torch.from_numpy(numbers)], labels[torch.from_numpy(numbers)]), np.arange(len(x)), size
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for start in range(0, len(self), self.size):
            yield self.pick(self.numbers[start : start + self.size])

    def take(self, which: Ints) -> "NumberedRows":
        return replace(self, numbers=self.numbers[which])

    def shuffle(self, seed: int, epoch: int) -> "NumberedRows":
        return self.take(np.random.default_rng([seed, epoch]).permutation(len(self)))
