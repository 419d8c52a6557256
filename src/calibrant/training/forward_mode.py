"""Slopes of a network along a direction of its weights, and its graph, from the recorded outputs of a batch.

Convolutions and linear layers take nearly all of a network's time. What they gave the first time is kept, and given
back when the same batch is looked at with the same weights.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, autograd
from torch.overrides import TorchFunctionMode

forward_ad: Any = autograd.forward_ad  # which has no types

CONVOLUTIONS = (torch.conv1d, torch.conv2d, torch.conv3d)
LINEAR = (*CONVOLUTIONS, torch.nn.functional.linear)  # all called with (input, weight, bias, ...)

LayerOutputs = list[
    tuple[Tensor, int]
]  # values, and their version: one that was changed in place is no longer what was given


class OutputRecorder(TorchFunctionMode):
    """Records the outputs of the layers of a network while it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs: LayerOutputs = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in LINEAR:
            self.outputs.append((out.detach(), out._version))
        return out


class OutputReplay(TorchFunctionMode):
    """Replay recorded outputs; gradients flow as if they had been computed."""

    def __init__(self, outputs: LayerOutputs) -> None:
        super().__init__()
        self.outputs = iter(outputs)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = _next(self.outputs, func, args, kwargs)
        return func(*args, **(kwargs or {})) if output is None else self.put(output, func, *args)

    def put(self, output: Tensor, func: Any, x: Tensor, weight: Tensor, bias: Any = None, *rest: Any) -> Any:
        return _LinearReplay.apply(output, func, x, weight, bias, *rest)  # type: ignore[no-untyped-call]


class _SlopeReplay(OutputReplay):
    """Replay in forward mode: values as they were recorded, slopes by the product rule."""

    def put(self, output: Tensor, func: Any, x: Any, weight: Any, bias: Any = None, *rest: Any) -> Any:
        x, weight, bias = (forward_ad.unpack_dual(t) if t is not None else (None, None) for t in (x, weight, bias))
        slopes = [func(x[1], weight[0], None, *rest)] if x[1] is not None else []
        if weight[1] is not None or bias[1] is not None:
            turn = torch.zeros_like(weight[0]) if weight[1] is None else weight[1]
            slopes += [func(x[0], turn, bias[1], *rest)]
        if not slopes:
            return output
        return forward_ad.make_dual(output, slopes[0].add_(slopes[1]) if len(slopes) > 1 else slopes[0])


class _LinearReplay(autograd.Function):
    @staticmethod
    def forward(ctx: Any, output: Tensor, func: Any, x: Tensor, weight: Tensor, bias: Any, *rest: Any) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.func, ctx.bias, ctx.rest = func, bias is not None, rest
        return output.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        if ctx.func in CONVOLUTIONS:
            stride, padding, dilation, groups = ctx.rest + (1, 0, 1, 1)[len(ctx.rest) :]  # as torch's defaults are
            size, mask = [grad.shape[1]], [ctx.needs_input_grad[2], ctx.needs_input_grad[3], ctx.bias]
            many = [[s] * (x.dim() - 2) if isinstance(s, int) else list(s) for s in (stride, padding, dilation)]
            none = [0] * (x.dim() - 2)
            slopes: Any = torch.ops.aten.convolution_backward(grad, x, weight, size, *many, False, none, groups, mask)
        else:
            rows = grad.flatten(0, -2)
            slopes = grad @ weight, rows.T @ x.flatten(0, -2), rows.sum(0) if ctx.bias else None
        return None, None, *slopes, *(None for _ in ctx.rest)


def slope_along(
    call: Callable[[dict[str, Tensor]], Tensor],
    weights: Mapping[str, Tensor],
    v: Mapping[str, Tensor],
    outputs: LayerOutputs,
) -> Tensor:
    """The derivative d/de call(weights + e v) at e = 0; `outputs` were recorded in a call with them, or are empty."""
    _load()
    with torch.no_grad(), forward_ad.dual_level(), _SlopeReplay(outputs):
        dual = {name: forward_ad.make_dual(weight, v[name]) for name, weight in weights.items()}
        slope: Tensor | None = forward_ad.unpack_dual(call(dual)).tangent
    if slope is None:
        raise TypeError("the output does not depend on these weights")
    return slope


@cache
def _load() -> None:
    """Load the rules of forward mode, which warns of torch's own code at the first use."""
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore", DeprecationWarning)
        forward_ad.make_dual(torch.ones(1), torch.ones(1))


def _next(outputs: Iterator[tuple[Tensor, int]], func: Any, args: Any, kwargs: Any) -> Tensor | None:
    """The recorded output of the layer; None where it was changed, has another precision, or is called unusually."""
    value, version = next(outputs, (None, 0)) if func in LINEAR else (None, 0)
    if value is None or kwargs or any(isinstance(arg, str) for arg in args):
        return None
    return value if value._version == version and value.dtype == args[1].dtype else None
