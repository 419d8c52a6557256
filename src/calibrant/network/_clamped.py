"""A clamped network: a perturbation before it, a temperature behind it; saved alone, or all of it as ONNX."""

import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from calibrant.calibrators._exportable import Exported
from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.predictions import Predictions
from calibrant.models._layers import frozen
from calibrant.network._batches import Loader, pairs
from calibrant.network._clamp_passes import check_inputs

TENSORS, FACTS = "clamp.safetensors", "clamp.json"


@dataclass(frozen=True)
class ClampRow:
    """One fit, with one gamma and one weight of the penalty; measures are those of the calibration rows."""

    gamma: float
    lam: float
    T: float
    delta_norm: float
    objective: float
    objective_temperature: float  # with no perturbation, at the T that this fit would then take
    ece: float  # 15 bins
    entropy: float
    stopped: str  # why


@dataclass(frozen=True)
class ClampReport:
    """How the fit went, on the calibration rows. The objective is the mean focal loss plus the penalty."""

    gamma: float
    lam: float
    T: float
    T_alone: float  # of temperature scaling with the same loss
    delta_norm: float
    objective_before: float  # of the network as it was
    objective_temperature: float  # of temperature scaling with the same loss
    objective: float
    ece_before: float  # 15 bins
    ece_temperature: float
    ece: float
    n: int
    k: int
    passes: int  # over the calibration rows
    helped: bool  # whether the perturbation lowered the objective
    diagnosis: str
    options: dict[str, Any]  # of NeuralClamping
    rows: tuple[ClampRow, ...] = ()  # where several gammas or weights were tried


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
        """The same network with one of the two, as it was learnt jointly."""
        if part not in ("delta", "T"):
            raise InputError("only", expected="delta or T", got=repr(part), fix="name one of the two")
        delta = self.delta if part == "delta" else torch.zeros_like(self.delta)
        return Clamped(self.network, delta, 1.0 if part == "delta" else float(self.T))

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
        from calibrant.network._clamp_onnx import export_clamped

        return export_clamped(self, path)

    def extra_repr(self) -> str:
        return f"delta {tuple(self.delta.shape)}, T={float(self.T):.4g}"


def load_clamped(folder: str | Path, network: nn.Module) -> Clamped:
    """What `Clamped.save` wrote, around the network that it was fitted to."""
    folder = Path(folder)
    facts = _facts(folder / FACTS)
    delta, T = _tensors(folder / TENSORS)
    if list(delta.shape) != facts["input_shape"] or float(T) != facts["T"]:
        got = f"shape {list(delta.shape)} and T {float(T):g} in {TENSORS}, {facts['input_shape']} and {facts['T']:g}"
        fix = "fit and save again"
        raise InputError(str(folder), expected="two files of one fit", got=f"{got} in {FACTS}", fix=fix)
    like = next(network.parameters(), delta)
    report = facts["report"]
    if report is not None:
        report = ClampReport(**report | {"rows": tuple(ClampRow(**row) for row in report["rows"])})
    return Clamped(network, delta.to(like.device, like.dtype), float(T), report=report)


def _facts(file: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads(file.read_text())
        if facts["calibrant_clamp"] != 1:
            fix = "use a newer calibrant"
            raise InputError(str(file), expected="version 1", got=str(facts["calibrant_clamp"]), fix=fix)
        return {key: facts[key] for key in ("input_shape", "T", "report")}
    except FileNotFoundError:
        fix = "give the folder that Clamped.save or calibrant clamp --out wrote"
        raise InputError(str(file.parent), expected=f"a {FACTS}", got="none", fix=fix) from None
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(str(file), expected=f"a {FACTS}", got=repr(error), fix="fit and save again") from None


def _tensors(file: Path) -> tuple[Tensor, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(file.read_bytes())
        return tensors["delta"], tensors["T"]
    except (FileNotFoundError, SafetensorError, KeyError) as error:
        got = "no such file" if isinstance(error, FileNotFoundError) else repr(error)
        raise InputError(str(file), expected="delta and T", got=got, fix="fit and save again") from None
