"""The slope of a network's output along a direction of its weights, by one pass in forward mode."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, autograd
from torch.overrides import TorchFunctionMode

forward_ad: Any = autograd.forward_ad  # which has no types

# What takes the time of a network, and is linear in its input and in its weight: (input, weight, bias, ...).
LINEAR = (torch.conv1d, torch.conv2d, torch.conv3d, torch.nn.functional.linear)


class Remembered(TorchFunctionMode):
    """Keeps what convolutions and linear layers gave, so that a second look at the same batch need not repeat them.

    The graph of the first look holds the same tensors where batch norm follows, so keeping them takes no memory there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in LINEAR:
            self.kept.append(out.detach())
        return out


class _Slopes(TorchFunctionMode):
    """The rule of a product for what is linear, with the values that were kept instead of new ones."""

    def __init__(self, kept: list[Tensor]) -> None:
        super().__init__()
        self.kept = iter(kept)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kept = next(self.kept, None) if func in LINEAR else None
        if kept is None or kwargs or kept.dtype != args[1].dtype:  # kept in another precision: compute
            return func(*args, **(kwargs or {}))
        x, weight, *rest = args
        bias, *rest = rest or [None]
        x, weight, bias = (forward_ad.unpack_dual(t) if t is not None else (None, None) for t in (x, weight, bias))
        slope = torch.zeros_like(kept)
        if x[1] is not None:
            slope += func(x[1], weight[0], None, *rest)
        if weight[1] is not None:
            slope += func(x[0], weight[1], None, *rest)
        if bias[1] is not None:
            slope += bias[1] if func is torch.nn.functional.linear else bias[1].view(-1, *[1] * (slope.dim() - 2))
        return forward_ad.make_dual(kept, slope)


def slope_along(
    call: Callable[[dict[str, Tensor]], Tensor],
    weights: Mapping[str, Tensor],
    v: Mapping[str, Tensor],
    kept: list[Tensor],
) -> Tensor:
    """d/de call(weights + e v) at e = 0; `kept` is what a `Remembered` call with these weights has kept, or empty."""
    with torch.no_grad(), forward_ad.dual_level(), _Slopes(kept):
        dual = {name: forward_ad.make_dual(weight, v[name]) for name, weight in weights.items()}
        slope: Tensor | None = forward_ad.unpack_dual(call(dual)).tangent
    if slope is None:
        raise TypeError("the output does not depend on these weights")
    return slope
