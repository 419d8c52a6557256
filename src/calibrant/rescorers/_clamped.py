"""A clamped network: a perturbation before it, a temperature behind it; saved alone, or all of it as ONNX."""

import json
import math
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from calibrant.core.config import build
from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.core.exported import Exported
from calibrant.core.predictions import Predictions
from calibrant.core.schema import read_json, whole
from calibrant.core.toml import Table, shown
from calibrant.core.torch.layers import frozen
from calibrant.core.torch.loader import Loader, pairs
from calibrant.rescorers._clamp_passes import check_inputs
from calibrant.rescorers._clamp_report import ClampReport

TENSORS, FACTS = "clamp.safetensors", "clamp.json"
AGAIN = "fit and save again"


class Clamped(nn.Module):
    """x -> f(x + delta) / T, for the f that it was fitted to.

    >>> clamped = Clamped(nn.Identity(), torch.tensor([1.0, 0.0]), 2.0)
    >>> clamped(torch.tensor([[3.0, 2.0]]))
    tensor([[2., 1.]])
    """

    delta: Tensor
    T: Tensor

    def __init__(self, network: nn.Module, delta: Tensor, T: float, *, report: ClampReport | None = None) -> None:
        super().__init__()
        self.network, self.report = network, report
        self.register_buffer("delta", delta.detach().clone())
        wide = torch.promote_types(delta.dtype, torch.float32)  # half a number is too coarse for T
        self.register_buffer("T", torch.tensor(T, dtype=wide, device=delta.device))
        self.training = network.training

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1:] != self.delta.shape:  # adding could spread one over the other without a word
            expected, got = f"inputs of the shape {tuple(self.delta.shape)}", str(tuple(x.shape[1:]))
            raise InputError("clamped network", expected=expected, got=got, fix="use inputs like those of the fit")
        logits: Tensor = self.network(x + self.delta)
        return logits / self.T

    def only(self, part: Literal["delta", "T"]) -> "Clamped":
        """The same network with one of the two, as it was learnt jointly; the report is that of the joint fit."""
        if part not in ("delta", "T"):
            raise InputError("only", expected="delta or T", got=repr(part), fix="name one of the two")
        delta = self.delta if part == "delta" else torch.zeros_like(self.delta)
        return Clamped(self.network, delta, 1.0 if part == "delta" else float(self.T), report=self.report)

    def predict(self, loader: Loader) -> Predictions:
        """Logits of every row, in the loader's order; the network is left as it was."""
        logits, labels = [], []
        with frozen(self), torch.no_grad():
            for x, y in pairs(loader, self.network):
                check_inputs(x, self.delta.shape)
                z = self(x)
                logits.append((z if z.dtype in (torch.float32, torch.float64) else z.float()).cpu())
                labels.append(y.cpu())
        if not logits:
            raise InputError("loader", expected="batches", got="none", fix="give inputs and labels")
        return Predictions.from_logits(torch.cat(logits).numpy(), torch.cat(labels).numpy(), few_rows=True)

    def save(self, folder: str | Path) -> None:
        """`clamp.safetensors` (delta, T) and `clamp.json` (shape, report): all but the network itself."""
        from safetensors.torch import save as to_bytes

        tensors = to_bytes({name: getattr(self, name).cpu().contiguous() for name in ("delta", "T")})
        facts = {
            "calibrant_clamp": 1,
            "version": version("calibrant"),
            "input_shape": list(self.delta.shape),
            "T": float(self.T),
            "report": None if self.report is None else asdict(self.report),
        }
        text = json.dumps(facts, indent=2).encode()
        write_whole(Path(folder) / TENSORS, lambda stream: stream.write(tensors))
        write_whole(Path(folder) / FACTS, lambda stream: stream.write(text))

    def export_onnx(self, path: str | Path) -> Exported:
        """Network and clamp as one file, inputs in and logits out, for batches of any size.

        Nothing is written unless onnxruntime gives torch's numbers.
        """
        from calibrant.rescorers._clamp_onnx import export_clamped

        return export_clamped(self, path)

    def extra_repr(self) -> str:
        return f"delta {tuple(self.delta.shape)}, T={float(self.T):.4g}"


@dataclass(frozen=True)
class _Saved:
    """clamp.json."""

    calibrant_clamp: int
    version: str
    input_shape: list[int]
    T: float
    report: ClampReport | None


def load_clamped(folder: str | Path, network: nn.Module) -> Clamped:
    """What `Clamped.save` wrote, around the network that it was fitted to."""
    folder = Path(folder)
    saved = _facts(folder / FACTS)
    delta, T = _tensors(folder / TENSORS)
    if list(delta.shape) != saved.input_shape or float(T) != saved.T:
        got = f"shape {list(delta.shape)} and T {float(T):g} in {TENSORS}, {saved.input_shape} and {saved.T:g}"
        raise InputError(str(folder), expected="two files of one fit", got=f"{got} in {FACTS}", fix=AGAIN)
    like = next(network.parameters(), delta)
    return Clamped(network, delta.to(like.device, like.dtype), float(T), report=saved.report)


def _facts(file: Path) -> _Saved:
    if not file.is_file():
        fix = "give the folder that Clamped.save or calibrant clamp --out wrote"
        raise InputError(str(file.parent), expected=f"a {FACTS}", got="none", fix=fix)
    values = read_json(file, expected=f"a {FACTS}", fix=AGAIN)
    with whole(str(file), fix=AGAIN):
        version = values["calibrant_clamp"]
    if version != 1:
        raise InputError(str(file), expected="version 1", got=shown(version), fix="use a newer calibrant")
    return build(_Saved, Table(values, {(): str(file)}))


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
