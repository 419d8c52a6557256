"""Batches that methods around a trained network look at."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

Loader = Iterable[Sequence[Any]]  # batches of inputs, labels and whatever else; gone through again and again


def pairs(loader: Loader, network: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs in the network's number type and labels, both where the network is."""
    like = next(network.parameters(), torch.zeros(()))
    for batch in loader:
        x, labels = batch[0], batch[1]
        kind = like.dtype if x.is_floating_point() else x.dtype
        yield x.to(like.device, kind), labels.to(like.device).long()
