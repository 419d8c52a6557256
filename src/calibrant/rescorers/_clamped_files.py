"""A clamp on disk: perturbation and temperature in one file, shape and report in another; not the network itself."""

import json
import math
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from torch import Tensor

from calibrant.core.config.convert import build
from calibrant.core.config.toml import Table, show_value
from calibrant.core.errors import InputError
from calibrant.core.files import write_text, write_whole
from calibrant.core.json import read_json, whole
from calibrant.rescorers._clamp_report import ClampReport

TENSORS, FACTS = "clamp.safetensors", "clamp.json"
AGAIN = "fit and save again"


@dataclass(frozen=True, eq=False)
class Clamp:
    """The perturbation, temperature and report of a clamped network, without the network."""

    delta: Tensor
    T: Tensor
    report: ClampReport | None


def save_clamp(clamp: Clamp, folder: str | Path) -> None:
    """Write `clamp.safetensors` (delta, T) and `clamp.json` (shape, report)."""
    from safetensors.torch import save as to_bytes

    tensors = to_bytes({name: getattr(clamp, name).cpu().contiguous() for name in ("delta", "T")})
    facts = {
        "calibrant_clamp": 1,
        "version": version("calibrant"),
        "input_shape": list(clamp.delta.shape),
        "T": float(clamp.T),
        "report": None if clamp.report is None else asdict(clamp.report),
    }
    write_whole(Path(folder) / TENSORS, lambda stream: stream.write(tensors))
    write_text(Path(folder) / FACTS, json.dumps(facts, indent=2))


def load_clamp(folder: Path) -> Clamp:
    """Read what `save_clamp` wrote."""
    saved = _facts(folder / FACTS)
    delta, T = _tensors(folder / TENSORS)
    if list(delta.shape) != saved.input_shape or float(T) != saved.T:
        got = f"shape {list(delta.shape)} and T {float(T):g} in {TENSORS}, {saved.input_shape} and {saved.T:g}"
        raise InputError(str(folder), expected="two files of one fit", got=f"{got} in {FACTS}", fix=AGAIN)
    return Clamp(delta, T, saved.report)


@dataclass(frozen=True)
class _ClampFile:
    """The content of clamp.json."""

    calibrant_clamp: int
    version: str
    input_shape: list[int]
    T: float
    report: ClampReport | None


def _facts(file: Path) -> _ClampFile:
    if not file.is_file():
        fix = "give the folder that ClampedNetwork.save or calibrant clamp --out wrote"
        raise InputError(str(file.parent), expected=f"a {FACTS}", got="none", fix=fix)
    values = read_json(file, expected=f"a {FACTS}", fix=AGAIN)
    with whole(str(file), fix=AGAIN):
        version = values["calibrant_clamp"]
    if version != 1:
        raise InputError(str(file), expected="version 1", got=show_value(version), fix="use a newer calibrant")
    return build(_ClampFile, Table(values, {(): str(file)}))


def _tensors(file: Path) -> tuple[Tensor, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(file.read_bytes())
        delta, T = tensors["delta"], tensors["T"]
    except (FileNotFoundError, SafetensorError, KeyError, ValueError, RuntimeError) as error:
        got = "no such file" if isinstance(error, FileNotFoundError) else repr(error)
        raise InputError(str(file), expected="delta and T", got=got, fix=AGAIN) from None
    if not delta.is_floating_point() or not delta.isfinite().all() or T.numel() != 1 or not 0 < float(T) < math.inf:
        raise InputError(str(file), expected="finite numbers, T above 0", got="others", fix=AGAIN)
    return delta, T
