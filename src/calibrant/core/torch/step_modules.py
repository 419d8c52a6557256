"""The operations of map steps on tensors, and each step as a torch module that holds its numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.core.maps.operations import BatchOperations, Scores, Value
from calibrant.core.maps.steps import Linear, Sigmoid, Step
from calibrant.core.predictions.constants import PROBABILITY_FLOOR


class TensorOperations(BatchOperations):
    """Tensors (..., k) or (..., 1), differentiable; the numbers of a step are the buffers of its module."""

    def softmax(self, z: Tensor) -> Tensor:
        return z.softmax(-1)

    def log(self, x: Tensor) -> Tensor:
        return x.log()

    def log1m(self, x: Tensor) -> Tensor:
        return torch.log1p(-x)

    def sigmoid(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    def clip(self, x: Tensor, low: float, high: float) -> Tensor:
        return x.clamp(low, high)

    def floored_log(self, probs: Tensor) -> Tensor:
        return probs.clamp(min=PROBABILITY_FLOOR).log()

    def affine(self, z: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return (z @ weight.T if weight.ndim == 2 else z * weight) + bias

    def argmax(self, x: Tensor) -> Tensor:
        return x.argmax(-1, keepdim=True)

    def gather(self, x: Tensor, classes: Tensor) -> Tensor:
        return x.gather(-1, classes)

    def one_hot(self, classes: Tensor, k: int) -> Tensor:
        return torch.arange(k, device=classes.device) == classes

    def where(self, mask: Tensor, yes: Value, no: Value) -> Tensor:
        return torch.where(mask, yes, no)

    def total(self, x: Tensor) -> Tensor:
        return x.sum(-1, keepdim=True)

    def as_number(self, mask: Tensor) -> Tensor:
        return mask.to(float_on(mask.device))

    def line(self, scores: Tensor, curves: Any) -> Tensor:
        columns = _columns(scores, curves)
        j = (torch.searchsorted(curves.x, columns.detach(), right=True) - 1).clamp(min=0)
        along = columns.clamp(min=curves.x[:, :1]) - curves.x.gather(1, j)
        return _like(scores, curves.y.gather(1, j) + curves.slope.gather(1, j) * along)

    def stair(self, scores: Tensor, curves: Any) -> Tensor:
        columns = _columns(scores, curves)
        j = torch.searchsorted(curves.x, columns.detach())
        return _like(scores, curves.y.gather(1, j) + 0.0 * columns)  # the gradient 0, not none at all

    def columns(self, table: Tensor) -> tuple[Tensor, ...]:
        return table.unbind(1)


def _columns(scores: Tensor, curves: Any) -> Tensor:
    """The scores (..., k) as rows, one for each curve, (c, n)."""
    columns = scores.reshape(-1, scores.shape[-1]).T.contiguous()
    return columns if len(curves.x) > 1 else columns.reshape(1, -1)


def _like(scores: Tensor, columns: Tensor) -> Tensor:
    return columns.reshape(scores.shape[-1], -1).T.reshape(scores.shape)


class StepModule(nn.Module):
    """A step whose numbers stay float64 when the network around it is cast to half or float."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step
        for name, array in step.numbers().items():
            self.register_buffer(name, torch.tensor(array, dtype=torch.float64))

    def forward(self, s: Scores) -> Scores:
        return self.step.run(s, self)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        def move(tensor: Tensor) -> Tensor:
            device = fn(torch.empty(0, device=tensor.device)).device
            return tensor.to(device, float_on(device)) if device.type != "meta" else tensor.to("meta")

        return super()._apply(move, recurse)  # type: ignore[no-untyped-call]


def linear_module(module: nn.Module, one_score: bool) -> StepModule | None:
    """The module as one of a linear step, or None where it is curved.

    Of one score a sigmoid of the log-odds leaves log-odds, and so is a line; of more classes it is not.
    """
    assert isinstance(module, StepModule)
    if isinstance(module.step, Linear):
        return module
    if not one_score or not isinstance(module.step, Sigmoid) or module.step.on == "scores":
        return None
    table = module.get_buffer("coefficients")
    a, b, constant, square = table[0].tolist()
    if module.step.on == "probs" and (a != b or square):
        return None
    return StepModule(Linear(np.array(a), np.array([0.0, constant]))).to(table.device)


def float_on(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


TENSORS = TensorOperations()
