"""A calibration map as a torch module: the last layer of a network."""

import io
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.maps.export_check import (
    ExportedFile,
    check_exportable,
    compare_outputs,
    to_input,
    trial_logits,
)
from calibrant.core.maps.map import Map
from calibrant.core.maps.operations import BatchScores
from calibrant.core.torch.step_modules import TENSORS, StepModule, float_on, linear_module


class TorchMap(nn.Module):
    """Logits (..., k) or (n, k, ...) in, calibrated logits out: the same numbers as `map(p).logits`.

    Images (n, k, height, width) and volumes have their classes in the second dimension. Where both that and the last
    have k entries, `axis` (1 or -1) says which it is.

    A map of one score (binary predictions, bare confidences) takes the log-odds ln(s / (1 - s)), any shape, and gives
    calibrated log-odds: their sigmoid is the probability. Options that a question does not have stand at -inf.

    Maps that give probabilities give their logarithms, floored at ln 1e-12. A map of the top label ("top") takes the
    largest incoming logit as the prediction; the largest outgoing one may be another when the calibrated confidence
    is small, so take the prediction from the logits before. Nothing is trained: the numbers are buffers, kept in
    float64 whatever the network is cast to (float32 on devices without float64), and the output has the input's type.

    >>> import numpy as np
    >>> from calibrant.core.maps.steps import Linear
    >>> m = Map(calibrator="temperature", k=2, steps=(Linear(np.array(np.log(3) / 2), np.array(0.0)),))  # T = 2 / ln 3
    >>> nn.Sequential(nn.Identity(), TorchMap(m))(torch.tensor([[2.0, 0.0]])).softmax(1)
    tensor([[0.7500, 0.2500]])
    """

    def __init__(self, map: Map, *, axis: int | None = None) -> None:
        super().__init__()
        if axis not in (None, 1, -1):
            raise InputError("axis", expected="1 or -1", got=str(axis), fix="say which dimension holds the classes")
        check_exportable(map)
        self.axis = axis
        self.k, self.calibrator = map.k, map.calibrator
        self.one_score, self.choices = map.one_score, map.task == "choice"
        self.steps = nn.ModuleList([StepModule(step) for step in map.steps])

    def forward(self, logits: Tensor) -> Tensor:
        if self.one_score:
            return self._of_one_score(logits)
        in_second = self.axis != -1 and logits.ndim > 2 and logits.shape[1] == self.k
        in_last = (self.axis != 1 or logits.ndim == 2) and logits.ndim > 0 and logits.shape[-1] == self.k
        if (in_second and in_last) or not (in_second or in_last):
            fix = "use the map of this network" if not in_last else "say which: to_torch(axis=1) or to_torch(axis=-1)"
            raise InputError(
                f"map of {self.calibrator}",
                expected=f"logits of {self.k} classes in the last dimension, or in the second, (n, {self.k}, ...)",
                got=f"shape {tuple(logits.shape)}" + (", where both fit" if in_last else ""),
                fix=fix,
            )
        if in_second:
            return self._of_classes(logits.movedim(1, -1)).movedim(-1, 1)
        return self._of_classes(logits)

    def _of_classes(self, logits: Tensor) -> Tensor:
        exists = logits > -torch.inf if self.choices else None
        scores = self._scores(logits, exists=exists)
        for step in self.steps:
            scores = step(scores)
        calibrated: Tensor = scores.logits
        return calibrated.to(logits.dtype)

    def fold_into(self, head: nn.Linear) -> None:
        """Change the weights of a network's last layer so that it gives calibrated logits by itself.

        The network keeps its layers, so that it is saved and loaded as before (`save_pretrained`, `state_dict`). Only
        for maps that are affine in the logits: temperature, bias, vector, matrix and the like, and Platt scaling of one
        logit. Fold once.

        >>> import numpy as np
        >>> from calibrant.core.maps.steps import Linear
        >>> layer = nn.Linear(1, 2)
        >>> before = layer(torch.ones(1, 1))
        >>> TorchMap(Map(calibrator="temperature", k=2, steps=(Linear(np.array(0.5), np.array(0.0)),))).fold_into(layer)
        >>> torch.allclose(layer(torch.ones(1, 1)), before / 2)
        True
        """
        width = 1 if self.one_score else self.k
        steps = [line for step in self.steps if (line := linear_module(step, self.one_score)) is not None]
        if len(steps) < len(self.steps):
            fix = "fit temperature, vector or matrix; or save the map and apply it to the network's logits"
            raise InputError(f"map of {self.calibrator}", expected="an affine map", got="a curved one", fix=fix)
        if head.out_features != width:
            fix = "give the network's last layer"
            raise InputError("head", expected=f"{width} outputs", got=str(head.out_features), fix=fix)
        weight, bias = self._affine(steps, head.weight.device)
        if head.bias is None and bias.abs().max() > 0:
            fix = "fit temperature, which needs none, or give a layer with a bias"
            raise InputError("head", expected="a layer with a bias", got="one without", fix=fix)
        with torch.no_grad():
            head.weight.copy_(weight @ head.weight.to(weight))
            if head.bias is not None:
                head.bias.copy_(weight @ head.bias.to(weight) + bias)

    def _affine(self, steps: list[StepModule], device: torch.device) -> tuple[Tensor, Tensor]:
        """W (k, k) and b (k,) of the linear steps, so that W z + b are the calibrated logits."""
        scores = self._scores(torch.eye(self.k + 1, self.k, device=device))
        for step in steps:
            scores = step(scores)
        bias = scores.logits[-1]
        weight = (scores.logits[:-1] - bias).T
        if not self.one_score:
            return weight, bias
        return (weight[1, 1] - weight[0, 1]).reshape(1, 1), (bias[1] - bias[0]).reshape(1)

    def _of_one_score(self, logits: Tensor) -> Tensor:
        """One score as two classes, of which the second is the one that the score is about."""
        second = torch.ones_like(logits, dtype=torch.int64).unsqueeze(-1)
        scores = self._scores(torch.stack([torch.zeros_like(logits), logits], -1), top=second, one_score=True)
        for step in self.steps:
            scores = step(scores)
        odds: Tensor = scores.logits[..., 1] - scores.logits[..., 0]
        return odds.to(logits.dtype)

    def _scores(self, values: Tensor, **options: Any) -> BatchScores:
        return BatchScores(ops=TENSORS, values=values.to(float_on(values.device)), k=self.k, **options)

    def extra_repr(self) -> str:
        return f"{self.calibrator}, k={self.k}"


def export_torch(m: Map, path: str | Path) -> ExportedFile:
    """A program that plain torch runs: `torch.export.load(path).module()(logits)`, float32 logits of any batch size."""
    program = _program(m)
    logits = trial_logits(m)
    loaded: Any = torch.export.load(io.BytesIO(program)).module()
    out = loaded(torch.tensor(logits)).double()
    probs = out.sigmoid().unsqueeze(1) if m.one_score else out.softmax(1)
    differences = compare_outputs(m, to_input(m, logits), probs.numpy(), "torch")
    write_whole(path, lambda stream: stream.write(program))
    return ExportedFile(Path(path), "torch", *differences)


def _program(m: Map) -> bytes:
    example = torch.zeros(3) if m.one_score else torch.zeros(3, m.k)
    batch = {0: torch.export.Dim("batch")}
    module = _Exact(TorchMap(m)) if m.one_score else _Normal(TorchMap(m))
    program = torch.export.export(module, (example,), dynamic_shapes=(batch,))
    stream = io.BytesIO()
    torch.export.save(program, stream)
    return stream.getvalue()


class _Exact(nn.Module):
    """Wrapper that computes in float64 whatever the type of its input."""

    def __init__(self, inner: TorchMap) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, logits: Tensor) -> Tensor:
        calibrated: Tensor = self.inner(logits.double())
        return calibrated.to(logits.dtype)


class _Normal(nn.Module):
    """Normalise logits to log-probabilities, which float32 holds without loss where it matters."""

    def __init__(self, inner: TorchMap) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, logits: Tensor) -> Tensor:
        calibrated: Tensor = self.inner(logits.double())
        return calibrated.log_softmax(-1).to(logits.dtype)
