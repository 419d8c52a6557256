"""A calibration map as a torch module: the last layer of a network."""

import io
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.core.exported import Exported, check_exportable, compared, given, has_one_score, trial_logits
from calibrant.core.map import Map
from calibrant.core.torch.steps import Handed, float_on, step_module


class TorchMap(nn.Module):
    """Logits (..., k) in, calibrated logits out: the same numbers as `map(p).logits`.

    A map of one score (binary predictions, bare confidences) takes the log-odds ln(s / (1 - s)), any shape, and gives
    calibrated log-odds: their sigmoid is the probability. Options that a question does not have stand at -inf.

    Maps that give probabilities give their logarithms, floored at ln 1e-12. A map of the top label ("top") takes the
    largest incoming logit as the prediction; the largest outgoing one may be another when the calibrated confidence
    is small, so take the prediction from the logits before. Nothing is trained: the numbers are buffers, kept in
    float64 whatever the network is cast to (float32 on devices without float64), and the output has the input's type.

    >>> import numpy as np
    >>> from calibrant.core.steps import Linear
    >>> m = Map("temperature", 2, (Linear(np.array(np.log(3) / 2), np.array(0.0)),))  # T = 2 / ln 3
    >>> nn.Sequential(nn.Identity(), TorchMap(m))(torch.tensor([[2.0, 0.0]])).softmax(1)
    tensor([[0.7500, 0.2500]])
    """

    def __init__(self, map: Map) -> None:
        super().__init__()
        check_exportable(map)
        self.k, self.calibrator = map.k, map.calibrator
        self.one_score, self.choices = has_one_score(map), map.shape == "choices"
        self.steps = nn.ModuleList([step_module(step, map.k) for step in map.steps])

    def forward(self, logits: Tensor) -> Tensor:
        if self.one_score:
            return self._of_one_score(logits)
        if logits.shape[-1] != self.k:
            raise InputError(
                f"map of {self.calibrator}",
                expected=f"logits of {self.k} classes in the last dimension",
                got=f"shape {tuple(logits.shape)}",
                fix="use the map of this network",
            )
        exists = logits > -torch.inf if self.choices else None
        state = Handed(logits.to(float_on(logits.device)), False, None, exists)
        for step in self.steps:
            state = step(state)
        return state.logits.to(logits.dtype)

    def _of_one_score(self, logits: Tensor) -> Tensor:
        """As two classes, of which the second is the one that the score is about."""
        z = logits.to(float_on(logits.device))
        state = Handed(torch.stack([torch.zeros_like(z), z], -1), False, None)
        for step in self.steps:
            state = step(state._replace(top=torch.ones_like(z, dtype=torch.int64).unsqueeze(-1)))
        return (state.logits[..., 1] - state.logits[..., 0]).to(logits.dtype)

    def extra_repr(self) -> str:
        return f"{self.calibrator}, k={self.k}"


def export_torch(m: Map, path: str | Path) -> Exported:
    """A program that plain torch runs: `torch.export.load(path).module()(logits)`, float32 logits of any batch size."""
    program = _program(m)
    logits = trial_logits(m)
    loaded: Any = torch.export.load(io.BytesIO(program)).module()
    out = loaded(torch.tensor(logits)).double()
    probs = out.sigmoid().unsqueeze(1) if has_one_score(m) else out.softmax(1)
    found = compared(m, given(m, logits), probs.numpy(), "torch")
    write_whole(path, lambda stream: stream.write(program))
    return Exported(Path(path), "torch", *found)


def _program(m: Map) -> bytes:
    example = torch.zeros(3) if has_one_score(m) else torch.zeros(3, m.k)
    batch = {0: torch.export.Dim("batch")}
    module = _Exact(TorchMap(m)) if has_one_score(m) else _Normal(TorchMap(m))
    program = torch.export.export(module, (example,), dynamic_shapes=(batch,))
    stream = io.BytesIO()
    torch.export.save(program, stream)
    return stream.getvalue()


class _Exact(nn.Module):
    """Computes in float64, whatever comes in."""

    def __init__(self, inner: TorchMap) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, logits: Tensor) -> Tensor:
        calibrated: Tensor = self.inner(logits.double())
        return calibrated.to(logits.dtype)


class _Normal(nn.Module):
    """Log-probabilities: near 0 where it matters, so that float32 holds them without loss."""

    def __init__(self, inner: TorchMap) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, logits: Tensor) -> Tensor:
        calibrated: Tensor = self.inner(logits.double())
        return calibrated.log_softmax(-1).to(logits.dtype)
