"""Freeze a network, find its last layer by name, and record the inputs of that layer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import Tensor, nn

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError


@contextmanager
def freeze(network: nn.Module) -> Iterator[None]:
    """The network in evaluation mode, its parameters without gradients; restored afterwards."""
    modes = [(module, module.training) for module in network.modules()]
    wanted = [(parameter, parameter.requires_grad) for parameter in network.parameters()]
    try:
        network.eval()
        for parameter, _ in wanted:
            parameter.requires_grad_(False)
        yield
    finally:
        for module, training in modes:
            module.training = training
        for parameter, requires in wanted:
            parameter.requires_grad_(requires)


def layer(network: nn.Module, name: str, method: str, *, option: str = "head") -> nn.Module:
    """The layer of this name (`head`, `fc`, `classifier.2`), whose input is what `method` calls features."""
    try:
        return network.get_submodule(name)
    except AttributeError:
        layers = [path for path, module in network.named_modules() if isinstance(module, nn.Linear)]
        have = f"its linear layers are {', '.join(layers[-4:])}" if layers else "it has no linear layer"
        raise InputError(
            type(network).__name__,
            expected=f"a last layer named {name}: {method} needs the features that go into it",
            got=f"no such layer; {have}",
            fix=f"say which one it is, for instance {option}='{layers[-1] if layers else 'fc'}'",
        ) from None


def check_finite(logits: Floats, items: Any) -> None:
    """Refuse NaN and infinity, which say that something is wrong with the network or its inputs."""
    wrong = (np.isnan(logits) | (logits == np.inf)).any(axis=1)
    if wrong.any():
        got = f"NaN or infinity in {wrong.sum():,} of {len(logits):,} rows, the first from input {items[wrong][0]}"
        fix = "look at the network's weights and at this input; in half precision, use float32 or bfloat16"
        raise InputError("network", expected="finite logits", got=got, fix=fix)


@contextmanager
def record_inputs(head: nn.Module) -> Iterator[list[Tensor]]:
    """Yield a list that holds the input of the layer after every call of the network."""
    recorded: list[Tensor] = []

    def record(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        recorded[:] = [inputs[0]]

    hook = head.register_forward_pre_hook(record)
    try:
        yield recorded
    finally:
        hook.remove()


def wide(logits: Tensor) -> Tensor:
    """Logits in the widest number type of the device: losses of confident rows need all digits."""
    return logits.float() if logits.device.type == "mps" else logits.double()
