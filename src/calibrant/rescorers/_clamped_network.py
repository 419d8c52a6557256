"""A clamped network: a perturbation before it, a temperature behind it."""

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.core.maps.export_check import ExportedFile
from calibrant.core.predictions import Predictions
from calibrant.core.torch.layers import freeze
from calibrant.core.torch.loader import Loader, pairs
from calibrant.rescorers._clamp_report import ClampReport
from calibrant.rescorers._clamped_files import Clamp, load_clamp, save_clamp
from calibrant.rescorers._clamped_onnx import export_clamped


class ClampedNetwork(nn.Module):
    """x -> f(x + delta) / T, for the f that it was fitted to.

    >>> clamped = ClampedNetwork(nn.Identity(), torch.tensor([1.0, 0.0]), 2.0)
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

    def only(self, part: Literal["delta", "T"]) -> "ClampedNetwork":
        """The network with one of the two parts, as it was learnt jointly; the report is that of the joint fit."""
        if part not in ("delta", "T"):
            raise InputError("only", expected="delta or T", got=repr(part), fix="name one of the two")
        delta = self.delta if part == "delta" else torch.zeros_like(self.delta)
        return ClampedNetwork(self.network, delta, 1.0 if part == "delta" else float(self.T), report=self.report)

    def predict(self, loader: Loader) -> Predictions:
        """Logits of every row, in the loader's order; the network is left as it was."""
        logits, labels = [], []
        with freeze(self), torch.no_grad():
            for x, y in pairs(loader, self.network):
                check_inputs(x, self.delta.shape)
                z = self(x)
                logits.append((z if z.dtype in (torch.float32, torch.float64) else z.float()).cpu())
                labels.append(y.cpu())
        if not logits:
            raise InputError("loader", expected="batches", got="none", fix="give inputs and labels")
        return Predictions.from_logits(torch.cat(logits).numpy(), torch.cat(labels).numpy())

    def save(self, folder: str | Path) -> None:
        """Write `clamp.safetensors` (delta, T) and `clamp.json` (shape, report): all but the network itself."""
        save_clamp(Clamp(self.delta, self.T, self.report), folder)

    def export_onnx(self, path: str | Path) -> ExportedFile:
        """Network and clamp as one file, inputs in and logits out, for batches of any size.

        Nothing is written unless onnxruntime gives torch's numbers.
        """
        return export_clamped(self.network, self.delta, self.T, path)

    def extra_repr(self) -> str:
        return f"delta {tuple(self.delta.shape)}, T={float(self.T):.4g}"


def load_clamped(folder: str | Path, network: nn.Module) -> ClampedNetwork:
    """Load what `ClampedNetwork.save` wrote, around the network that it was fitted to."""
    clamp = load_clamp(Path(folder))
    like = next(network.parameters(), clamp.delta)
    return ClampedNetwork(network, clamp.delta.to(like.device, like.dtype), float(clamp.T), report=clamp.report)


def check_inputs(x: Tensor, shape: torch.Size) -> None:
    """Refuse inputs that a perturbation of this shape cannot be added to."""
    if not x.is_floating_point():
        raise InputError(
            "inputs",
            expected="floating-point numbers, to which a perturbation can be added",
            got=str(x.dtype).removeprefix("torch."),
            fix="normalise images, embed tokens first, and clamp the network that comes after it",
        )
    if x.shape[1:] != shape:
        got, expected = f"{tuple(x.shape[1:])}", f"inputs of the shape {tuple(shape)}, as the perturbation has"
        raise InputError("inputs", expected=expected, got=got, fix="pad or cut all inputs to one shape")
    if not len(x):
        raise InputError("inputs", expected="rows in every batch", got="an empty batch", fix="leave empty batches out")
    if not torch.isfinite(x).all():
        raise InputError("inputs", expected="finite numbers", got="NaN or infinity", fix="clean the inputs")
