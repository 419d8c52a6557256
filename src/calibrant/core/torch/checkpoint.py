"""States on disk: one safetensors file each, tensors and a few facts, written whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError


def save(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    from safetensors.torch import save as to_bytes

    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    data = to_bytes(whole, metadata={"calibrant": json.dumps(dict(facts))})
    write_whole(path, lambda stream: stream.write(data))


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {}).get("calibrant", "{}"))
            if not isinstance(facts, dict):
                raise ValueError("no facts in it")
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118  not a dict
    except FileNotFoundError:
        raise InputError(str(path), expected="a safetensors file", got="no such file", fix="check the path") from None
    except (SafetensorError, ValueError, RecursionError, OSError) as error:
        fix = "delete it and start over"
        raise InputError(str(path), expected="a safetensors file", got=str(error), fix=fix) from None


def named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of one owner, by their own names."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def put(network: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Weights into a network they fit."""
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        first = str(error).split("\n\t")[1:2]
        raise InputError(
            where,
            expected=f"weights of {type(network).__name__} as the recipe describes it",
            got=(first[0] if first else str(error)).strip()[:200],
            fix="use the recipe and the data these weights were trained with",
        ) from None


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{i}.{name}": torch.as_tensor(value)
        for i, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def put_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
