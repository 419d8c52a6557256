"""A calibration map as a torch module: the last layer of a network."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.core.disk import write_whole
from calibrant.core.errors import InputError
from calibrant.core.exported import (
    Exported,
    Knots,
    check_exportable,
    compared,
    given,
    has_one_score,
    trial_logits,
    unknown_step,
)
from calibrant.core.map import Map
from calibrant.core.steps import SCORE_FLOOR, Curves, Linear, LogProbs, Mix, Sigmoid, Step
from calibrant.core.views import PROBABILITY_FLOOR


class TorchMap(nn.Module):
    """Logits (..., k) in, calibrated logits out: the same numbers as `map(p).logits`.

    A map of one score (binary predictions, bare confidences) takes the log-odds ln(s / (1 - s)), any shape, and gives
    calibrated log-odds: their sigmoid is the probability. Options that a question does not have stand at -inf.

    Maps that give probabilities give their logarithms, floored at ln 1e-12. A map of the top label ("top") takes the
    largest incoming logit as the prediction; the largest outgoing one may be another when the calibrated confidence
    is small, so take the prediction from the logits before. Nothing is trained: the numbers are buffers, kept in
    float64 whatever the network is cast to (float32 on devices without float64), and the output has the input's type.

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
        self.steps = nn.ModuleList([_module(step, map.k) for step in map.steps])

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
        state = Handed(logits.to(_float_on(logits.device)), False, None, exists)
        for step in self.steps:
            state = step(state)
        return state.logits.to(logits.dtype)

    def _of_one_score(self, logits: Tensor) -> Tensor:
        """As two classes, of which the second is the one that the score is about."""
        z = logits.to(_float_on(logits.device))
        state = Handed(torch.stack([torch.zeros_like(z), z], -1), False, None)
        for step in self.steps:
            state = step(state._replace(top=torch.ones_like(z, dtype=torch.int64).unsqueeze(-1)))
        return (state.logits[..., 1] - state.logits[..., 0]).to(logits.dtype)

    def extra_repr(self) -> str:
        return f"{self.calibrator}, k={self.k}"


class Handed(NamedTuple):
    """What one step hands to the next: logits or probabilities, and the prediction where a step has settled it."""

    values: Tensor  # (..., k)
    are_probs: bool
    top: Tensor | None  # (..., 1)
    exists: Tensor | None = None  # (..., k) the options there are, where that differs

    @property
    def logits(self) -> Tensor:
        if not self.are_probs:
            return self.values
        logs = self.values.clamp(min=PROBABILITY_FLOOR).log()
        return logs if self.exists is None else logs.masked_fill(~self.exists, -torch.inf)

    @property
    def uniform(self) -> Tensor:
        there = torch.ones_like(self.values) if self.exists is None else self.exists.to(self.values.dtype)
        return there / there.sum(-1, keepdim=True)

    @property
    def probs(self) -> Tensor:
        return self.values if self.are_probs else self.values.softmax(-1)

    @property
    def predicted(self) -> Tensor:
        return self.values.argmax(-1, keepdim=True) if self.top is None else self.top


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


def _float_on(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64


class _Step(nn.Module):
    """A step whose numbers stay float64 when the network around it is cast to half or float."""

    def hold(self, name: str, array: Any) -> None:
        self.register_buffer(name, torch.tensor(np.asarray(array, dtype=np.float64)))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        def moved(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point():
                return fn(tensor)
            device = fn(torch.empty(0, device=tensor.device)).device
            return tensor.to(device, _float_on(device)) if device.type != "meta" else tensor.to("meta")

        return super()._apply(moved, recurse)  # type: ignore[no-untyped-call]


class _Linear(_Step):
    weight: Tensor
    bias: Tensor

    def __init__(self, step: Linear) -> None:
        super().__init__()
        self.hold("weight", step.weight)
        self.hold("bias", step.bias)
        self.keeps_order = step.keeps_order

    def forward(self, s: Handed) -> Handed:
        z = s.logits @ self.weight.T if self.weight.ndim == 2 else s.logits * self.weight
        return Handed(z + self.bias, False, s.top if self.keeps_order else None, s.exists)


class _LogProbs(_Step):
    def forward(self, s: Handed) -> Handed:
        logs = s.logits if s.are_probs else s.values.log_softmax(-1)
        return Handed(logs.clamp(min=float(np.log(PROBABILITY_FLOOR))), False, s.top, s.exists)


class _Mix(_Step):
    T: Tensor
    weights: Tensor

    def __init__(self, step: Mix) -> None:
        super().__init__()
        self.hold("T", step.T if step.weights[0] else 1.0)
        self.hold("weights", step.weights)

    def forward(self, s: Handed) -> Handed:
        hot, plain, flat = self.weights.unbind()
        mixed = hot * (s.logits / self.T).softmax(-1) + plain * s.probs + flat * s.uniform
        return Handed(mixed, True, s.top, s.exists)


class _Rescored(_Step):
    """New probabilities from a function of one score: of the predicted class, or of every class and renormalised."""

    def __init__(self, step: Curves | Sigmoid, k: int) -> None:
        super().__init__()
        self.scope, self.k = step.scope, k
        self.register_buffer("classes", torch.arange(k))

    classes: Tensor

    def scores(self, s: Handed) -> Tensor:
        return s.probs

    def value(self, scores: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, s: Handed) -> Handed:
        if self.scope == "top":
            return self._top(s)
        values = self.value(self.scores(s))
        total = values.sum(-1, keepdim=True)
        some = total > 0
        probs = torch.where(some, values / torch.where(some, total, 1.0), 1 / self.k)
        return Handed(probs, True, s.predicted if self.scope == "shared" else None)

    def _top(self, s: Handed) -> Handed:
        top = s.predicted
        q = self.value(self.scores(s).gather(-1, top)).clamp(0.0, 1.0)  # (..., 1)
        is_top = self.classes == top
        others = torch.where(is_top, 0.0, s.probs)
        rest = others.sum(-1, keepdim=True)
        some = rest > 0
        alike = s.uniform / (1 - s.uniform) * (1 - q)  # 1 / (k - 1) each
        shared = torch.where(some, others * ((1 - q) / torch.where(some, rest, 1.0)), alike)
        return Handed(torch.where(is_top, q, shared), True, top, s.exists)


class _Curves(_Rescored):
    x: Tensor
    y: Tensor
    slope: Tensor

    def __init__(self, step: Curves, k: int) -> None:
        super().__init__(step, k)
        self.line = step.form == "line"
        knots = Knots.of(step)
        for name in ("x", "y", "slope"):
            self.hold(name, getattr(knots, name))

    def value(self, scores: Tensor) -> Tensor:
        columns = scores.reshape(-1, scores.shape[-1]).T.contiguous()  # (k or 1, n)
        rows = columns if len(self.x) > 1 else columns.reshape(1, -1)
        j = torch.searchsorted(self.x, rows.detach(), right=self.line)
        if self.line:
            j = (j - 1).clamp(min=0)
        values = self.y.gather(1, j) + 0.0 * rows  # a stair has the gradient 0, not none at all
        if self.line:
            values = values + self.slope.gather(1, j) * (rows.clamp(min=self.x[:, :1]) - self.x.gather(1, j))
        return values.reshape(columns.shape).T.reshape(scores.shape)


class _Sigmoid(_Rescored):
    coefficients: Tensor

    def __init__(self, step: Sigmoid, k: int) -> None:
        super().__init__(step, k)
        self.on = step.on
        self.hold("coefficients", step.coefficients if step.scope == "classes" else step.coefficients[:1])

    def scores(self, s: Handed) -> Tensor:
        return s.probs if self.on == "probs" else s.logits

    def value(self, scores: Tensor) -> Tensor:
        a, b, constant, square = self.coefficients.unbind(1)  # (k,) or (1,)
        if self.on == "logits":
            return torch.sigmoid(a * scores + constant)
        s = scores.clamp(SCORE_FLOOR, 1 - SCORE_FLOOR)
        inside = a * s.log() - b * torch.log1p(-s) + constant + square * (s / (1 - s)).log() ** 2
        return torch.sigmoid(inside)


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


def _module(step: Step, k: int) -> _Step:
    match step:
        case Linear():
            return _Linear(step)
        case LogProbs():
            return _LogProbs()
        case Mix():
            return _Mix(step)
        case Curves(form="line" | "stair", scope="top" | "classes" | "shared"):
            return _Curves(step, k)
        case Sigmoid(on="probs" | "logits", scope="top" | "classes" | "shared"):
            return _Sigmoid(step, k)
    raise unknown_step(step)
