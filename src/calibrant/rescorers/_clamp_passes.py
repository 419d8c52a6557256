"""Passes of a frozen network over calibration batches: logits at a perturbation, gradients by it, and their count."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError
from calibrant.core.torch.layers import wide
from calibrant.core.torch.loader import NO_ITERATOR, Loader, NumberedRows, pairs
from calibrant.rescorers._clamped_network import check_inputs

OnPass = Callable[[int], None]
CPU_ROWS = 100  # images at a time on a CPU: what a network makes of more of them does not fit its caches


@dataclass(frozen=True)
class PerturbedOutput:
    """Output of the network with a perturbation: logits before any temperature."""

    delta: Tensor  # of one input's shape; float64, with the digits that the network's number type keeps
    logits: npt.NDArray[np.float64]  # (n, k)
    labels: Ints  # (n,)


class Passes:
    """A network and batches that are gone through again and again; `count` says how often.

    Perturbations and gradients are kept in float64 on the CPU: adding up small steps needs the digits.
    """

    def __init__(self, network: nn.Module, loader: Loader, on_pass: OnPass | None = None) -> None:
        self.network, self.loader, self.on_pass, self.count = network, loader, on_pass, 0
        like = next(network.parameters(), torch.zeros(()))
        self.dtype, self.device = like.dtype, like.device
        self._rows: NumberedRows | None = None
        self.low, self.high = torch.empty(0), torch.empty(0)  # of the inputs, coordinate by coordinate
        self.zero = self._first()

    @property
    def shape(self) -> torch.Size:
        """The shape of one input."""
        return self.low.shape

    def rows(self, size: int) -> NumberedRows:
        """The rows by number, in batches of another size."""
        if self._rows is None:
            self._rows = NumberedRows.of(self.loader, size)
        return replace(self._rows, size=size)

    def look(self, delta: Tensor, at: Loader | None = None) -> PerturbedOutput:
        """Forward only: one pass, over other rows where they are given. Logits may be infinite or NaN."""
        perturbation = delta.to(self.device, self.dtype)
        logits, labels = [], []
        with torch.no_grad():
            for x, y in _pieces(self.batches(at)):
                logits.append(wide(self.network(x + perturbation)).cpu())
                labels.append(y.cpu())
        return PerturbedOutput(
            perturbation.cpu().double(), torch.cat(logits).double().numpy(), torch.cat(labels).numpy()
        )

    def gradient(self, delta: Tensor, of: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Forward and backward: one pass. The gradient by delta of the mean over rows of `of(logits, labels)` (B,)."""
        perturbation = delta.to(self.device, self.dtype, copy=True).requires_grad_()
        total, n = torch.zeros(self.shape, dtype=torch.float64), 0
        for x, y in _pieces(self.batches()):
            with torch.enable_grad():
                value = of(wide(self.network(x + perturbation)), y).sum()
            (part,) = torch.autograd.grad(value, perturbation)
            total += part.cpu().double()
            n += len(y)
        return total / n

    def batches(self, at: Loader | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs and labels where the network is; at the end the pass is counted."""
        has_rows = False
        for x, y in pairs(self.loader if at is None else at, self.network):
            check_inputs(x, self.shape)
            has_rows = True
            yield x, y
        if not has_rows:
            got = "none in this one"
            raise InputError("loader", expected="the same batches in every pass", got=got, fix=NO_ITERATOR)
        self.count_one()

    def count_one(self) -> None:
        self.count += 1
        if self.on_pass is not None:
            self.on_pass(self.count)

    def _first(self) -> PerturbedOutput:
        """Run the pass without a perturbation, which learns shapes and ranges and refuses unsuitable networks."""
        logits: list[Tensor] = []
        labels: list[Tensor] = []
        for x, y in _pieces(pairs(self.loader, self.network)):
            if not logits:
                self.low = torch.full(x.shape[1:], torch.inf, dtype=torch.float64)
                self.high = -self.low
            check_inputs(x, self.shape)
            with torch.no_grad():
                logits.append(_check_logits(self.network(x), y))
            labels.append(y.cpu())
            self.low = torch.minimum(self.low, x.amin(0).cpu().double())
            self.high = torch.maximum(self.high, x.amax(0).cpu().double())
        if not logits:
            raise InputError("loader", expected="calibration batches", got="none", fix="give inputs and labels")
        self.count_one()
        look = PerturbedOutput(
            self.low.new_zeros(self.shape), torch.cat(logits).double().numpy(), torch.cat(labels).numpy()
        )
        classes = np.unique(look.labels)
        if len(classes) < 2:
            got = f"only class {classes[0]} in {len(look.labels)} rows"
            raise InputError("labels", expected="at least two classes", got=got, fix="calibrate on rows of every class")
        return look


def _pieces(batches: Iterator[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    """Split batches into the pieces that are fastest: images on a CPU few at a time, with their channels last."""
    for x, y in batches:
        if x.device.type != "cpu" or x.ndim != 4:
            yield x, y
            continue
        for start in range(0, len(x), CPU_ROWS):
            rows = slice(start, start + CPU_ROWS)
            yield x[rows].contiguous(memory_format=torch.channels_last), y[rows]


def _check_logits(logits: object, labels: Tensor) -> Tensor:
    if not isinstance(logits, Tensor) or logits.ndim != 2 or logits.shape[1] < 2:
        got = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        fix = "wrap the network so that it returns its logits alone"
        raise InputError("network", expected="logits (rows, classes)", got=got, fix=fix)
    if labels.shape != logits.shape[:1]:
        got = f"labels of shape {tuple(labels.shape)} for {len(logits)} rows"
        raise InputError("labels", expected="one class number a row", got=got, fix="check the batches")
    if not torch.isfinite(logits).all():
        raise InputError("network", expected="finite logits", got="NaN or infinity", fix="check its weights and inputs")
    k = logits.shape[1]
    if labels.min() < 0 or labels.max() >= k:
        got = f"{int(labels.min())} to {int(labels.max())}"
        raise InputError("labels", expected=f"integers in 0..{k - 1}", got=got, fix="count classes from 0")
    return wide(logits).cpu()
