"""Networks of other packages: find their last layer, and record the features that go into it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError, unknown_name
from calibrant.models._base import Network, Shape

Pass = tuple[str, Tensor, Tensor]  # name of a layer, what went in, what came out; both flat (B, ...)


class External(Network):
    """Another package's network, with the features recorded that go into its `head`.

    Parameters, buffers and saved weights are those of the network inside. What it does after its head is left out.
    """

    def __init__(self, network: nn.Module, head: str) -> None:
        super().__init__()
        self.network = network
        self.training = network.training
        # Not registered a second time: the head is already a part of the network.
        object.__setattr__(self, "head", network.get_submodule(head))

    def features(self, x: Tensor) -> Tensor:
        return self._run(x)[0]

    def forward(self, x: Tensor) -> Tensor:
        return self._run(x)[1]

    def _run(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with _watch({"head": self.head}) as passes:
            self.network(x)
        _, inside, logits = passes[-1]
        return inside, logits

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        return self.network.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in [name for name in state_dict if name.startswith(prefix)]:
            state_dict[f"{prefix}network.{name.removeprefix(prefix)}"] = state_dict.pop(name)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def wrap(network: nn.Module, shape: Shape, what: str, head: str | None = None) -> Network:
    """Wrap a network, its head found or checked by running it on two images."""
    if head is not None:
        _check_name(network, head, what)
    modes = [(module, module.training) for module in network.modules()]
    try:
        network.eval()
        if isinstance(network, Network) and head is None:
            _check_logits(_look(network, shape, what), shape, what)
            return network
        linear = {name: module for name, module in network.named_modules() if isinstance(module, nn.Linear)}
        with _watch(linear if head is None else {head: network.get_submodule(head)}) as passes:
            output = _look(network, shape, what)
        if head is None:
            head = _last_layer(passes, output, shape, what)
        else:
            _check_layer(passes, network.get_submodule(head), shape, f"{what}, head={head}")
    finally:
        for module, training in modes:
            module.training = training
    return External(network, head)


# -- the look -------------------------------------------------------------------------------------


@contextmanager
def _watch(layers: Mapping[str, nn.Module]) -> Iterator[list[Pass]]:
    """Record the inputs and outputs of some layers while the network runs."""
    passes: list[Pass] = []

    def note(name: str, _: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if inputs and isinstance(output, Tensor) and output.ndim > 1:
            passes.append((name, inputs[0].flatten(1), output.flatten(1)))

    hooks = [layer.register_forward_hook(partial(note, name)) for name, layer in layers.items()]
    try:
        yield passes
    finally:
        for hook in hooks:
            hook.remove()


def _look(network: nn.Module, shape: Shape, what: str) -> Any:
    """The output of the network for two images of noise, with torch's random numbers left as they were."""
    like = next(network.parameters(), torch.empty(0))
    noise = torch.randn(2, shape.channels, shape.size, shape.size, generator=torch.Generator().manual_seed(0))
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            return network(noise.to(like))
    except Exception as error:
        images = f"{shape.channels} x {shape.size} x {shape.size}"
        fix = "give its arguments as ?name=value, or change the images"
        raise InputError(what, expected=f"a network for images of {images}", got=first_line(error), fix=fix) from error


def _last_layer(passes: list[Pass], output: Any, shape: Shape, what: str) -> str:
    logits: Any = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", output)
    _check_logits(logits, shape, what)
    for name, _, layer_output in reversed(passes):
        if layer_output.shape == logits.shape and torch.equal(layer_output, logits):
            return name
    raise InputError(
        what,
        expected="logits that come straight out of a linear layer",
        got="none of its linear layers makes them",
        fix="name the last layer, for instance ?head=classifier",
    )


def _check_layer(passes: list[Pass], layer: nn.Module, shape: Shape, what: str) -> None:
    if not passes:
        raise InputError(what, expected="a layer that makes the logits", got="one that is not used", fix="name another")
    _, inside, output = passes[-1]
    _check_logits(output, shape, what)
    try:
        with torch.no_grad():
            agrees = torch.allclose(layer(inside), output, atol=1e-5)
    except RuntimeError:
        agrees = False
    if not agrees:
        expected, got = "a layer that turns flat features (B, d) into logits", "one that does not"
        raise InputError(what, expected=expected, got=got, fix="name another layer")


def _check_logits(logits: Any, shape: Shape, what: str) -> None:
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        got = f"numbers of shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        fix = "name the layer that makes the logits, for instance ?head=classifier"
        raise InputError(what, expected="logits (B, classes)", got=got, fix=fix)
    if logits.shape[1] != shape.classes:
        fix = f"pass the number of classes, for instance ?num_classes={shape.classes}"
        raise InputError(what, expected=f"{shape.classes} classes, as in the data", got=str(logits.shape[1]), fix=fix)


def _check_name(network: nn.Module, head: str, what: str) -> None:
    names = [name for name, module in network.named_modules() if name]
    if head not in names:
        layers = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
        raise unknown_name(f"{what}, head", head, layers or names)


def first_line(error: Exception) -> str:
    """The first line of an error, without its full stop: ours follows."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__
