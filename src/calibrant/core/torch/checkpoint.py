"""Tensors on disk: safetensors files with a few facts, and weights that other programs saved with torch."""

import io
import json
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.core.files import read_regular, write_whole
from calibrant.core.pickles import check_nesting

NESTED = ("state_dict", "model_state_dict", "model", "network", "net")  # where a checkpoint keeps its weights
OLD_PICKLES = 4  # of the format before zip archives: a number, a version, the machine, and what was saved
BROKEN = (
    pickle.UnpicklingError, RuntimeError, ValueError, LookupError, EOFError, OSError, TypeError, AttributeError,
    AssertionError, OverflowError, MemoryError, zipfile.BadZipFile,
)  # fmt: skip  # what torch and pickletools raise on bytes that are no checkpoint; RecursionError is a RuntimeError
WRAPPERS = ("module.", "_orig_mod.", "model.")  # put before every name by DataParallel, torch.compile, Lightning


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


def load_weights(path: Path) -> dict[str, Tensor]:
    """The weights in a file of safetensors or of `torch.save`; no code in it is run.

    Of a checkpoint with more in it the weights are taken, and prefixes that wrappers put before every name go.
    """
    try:
        whole = read_regular(path)
    except OSError as error:
        got = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise InputError(str(path), expected="a file of weights", got=got, fix="check the path") from None
    if whole[:2] == b"PK" or whole[:1] == b"\x80":  # a zip archive or a pickle: both are of torch.save
        content = _load_torch(path, whole)
        content = next((content[key] for key in NESTED if isinstance(content.get(key), Mapping)), content)
    else:
        content = load(path)[0]
        content = under("network", content) or content
    tensors = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if not tensors:
        fix = "save the network's state_dict()"
        raise InputError(str(path), expected="tensors by name", got="none", fix=fix)
    for prefix in WRAPPERS:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors


def name_tensors(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of the module of this name, by their names inside it."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def put(network: nn.Module, tensors: Mapping[str, Tensor], where: str) -> None:
    """Load weights into a network that they fit."""
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        first = str(error).split("\n\t")[1:2]
        raise InputError(
            where,
            expected=f"weights that fit {type(getattr(network, 'network', network)).__name__}",
            got=(first[0] if first else str(error)).strip().rstrip(".")[:200],
            fix="use the network, its options and the classes that these weights were trained with",
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


def _load_torch(path: Path, content: bytes) -> dict[str, Any]:
    try:
        for stream, pickles in _pickles(content):
            for _ in range(pickles):
                check_nesting(stream)
        loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except BROKEN as error:
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        got = f"also {named[1]}, which is code" if named else "a damaged file"
        fix = "save the weights alone, where you trust the file: torch.save(network.state_dict(), FILE)"
        raise InputError(str(path), expected="a torch file with tensors only", got=got, fix=fix) from None
    if not isinstance(loaded, Mapping):
        fix = "save the network's state_dict()"
        raise InputError(str(path), expected="tensors by name", got=f"a {type(loaded).__name__}", fix=fix)
    return dict(loaded)


def _pickles(content: bytes) -> Iterator[tuple[io.BytesIO, int]]:
    """The pickles of a torch file, in streams of so many one after the other: torch builds them before it looks."""
    if content[:2] != b"PK":
        yield io.BytesIO(content), OLD_PICKLES
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            if info.filename.endswith(".pkl"):
                if info.compress_type != zipfile.ZIP_STORED:
                    raise ValueError("a compressed pickle, which torch never writes")
                yield io.BytesIO(archive.read(info)), 1
