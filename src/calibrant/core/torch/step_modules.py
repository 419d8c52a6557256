"""The steps of a map as torch modules, each handing logits or probabilities to the next."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.core.maps.export_check import Knots, unknown_step
from calibrant.core.maps.steps import SCORE_FLOOR, Curves, Linear, LogProbs, Mix, Sigmoid, Step
from calibrant.core.predictions.constants import PROBABILITY_FLOOR


def step_module(step: Step, k: int) -> "StepModule":
    match step:
        case Linear():
            return LinearModule(step)
        case LogProbs():
            return _LogProbs()
        case Mix():
            return _Mix(step)
        case Curves(form="line" | "stair", scope="top" | "classes" | "shared"):
            return _Curves(step, k)
        case Sigmoid(on="probs" | "logits" | "scores", scope="top" | "classes" | "shared"):
            return _Sigmoid(step, k)
    raise unknown_step(step)


class StepOutput(NamedTuple):
    """Output of one step: logits or probabilities, and the prediction where a step has fixed it."""

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


class StepModule(nn.Module):
    """A step whose numbers stay float64 when the network around it is cast to half or float."""

    def hold(self, name: str, array: Any) -> None:
        self.register_buffer(name, torch.tensor(np.asarray(array, dtype=np.float64)))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        def move(tensor: Tensor) -> Tensor:
            if not tensor.is_floating_point():
                return fn(tensor)
            device = fn(torch.empty(0, device=tensor.device)).device
            return tensor.to(device, float_on(device)) if device.type != "meta" else tensor.to("meta")

        return super()._apply(move, recurse)  # type: ignore[no-untyped-call]


class LinearModule(StepModule):
    weight: Tensor
    bias: Tensor

    def __init__(self, step: Linear) -> None:
        super().__init__()
        self.hold("weight", step.weight)
        self.hold("bias", step.bias)
        self.keeps_order = step.keeps_order

    def forward(self, s: StepOutput) -> StepOutput:
        z = s.logits @ self.weight.T if self.weight.ndim == 2 else s.logits * self.weight
        return StepOutput(z + self.bias, False, s.top if self.keeps_order else None, s.exists)


class _LogProbs(StepModule):
    def forward(self, s: StepOutput) -> StepOutput:
        logs = s.logits if s.are_probs else s.values.log_softmax(-1)
        return StepOutput(logs.clamp(min=float(np.log(PROBABILITY_FLOOR))), False, s.top, s.exists)


class _Mix(StepModule):
    T: Tensor
    weights: Tensor

    def __init__(self, step: Mix) -> None:
        super().__init__()
        self.hold("T", step.T if step.weights[0] else 1.0)
        self.hold("weights", step.weights)

    def forward(self, s: StepOutput) -> StepOutput:
        hot, plain, flat = self.weights.unbind()
        mixed = hot * (s.logits / self.T).softmax(-1) + plain * s.probs + flat * s.uniform
        return StepOutput(mixed, True, s.top, s.exists)


class _ScoreFunction(StepModule):
    """New probabilities from a function of one score: of the predicted class, or of every class and renormalised."""

    def __init__(self, step: Curves | Sigmoid, k: int) -> None:
        super().__init__()
        self.scope, self.k = step.scope, k
        self.register_buffer("classes", torch.arange(k))

    classes: Tensor

    def scores(self, s: StepOutput) -> Tensor:
        return s.probs

    def value(self, scores: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, s: StepOutput) -> StepOutput:
        if self.scope == "top":
            return self._top(s)
        values = self.value(self.scores(s))
        total = values.sum(-1, keepdim=True)
        is_positive = total > 0
        probs = torch.where(is_positive, values / torch.where(is_positive, total, 1.0), 1 / self.k)
        return StepOutput(probs, True, s.predicted if self.scope == "shared" else None)

    def _top(self, s: StepOutput) -> StepOutput:
        top = s.predicted
        q = self.value(self.scores(s).gather(-1, top)).clamp(0.0, 1.0)  # (..., 1)
        is_top = self.classes == top
        others = torch.where(is_top, 0.0, s.probs)
        rest = others.sum(-1, keepdim=True)
        is_positive = rest > 0
        alike = s.uniform / (1 - s.uniform) * (1 - q)  # 1 / (k - 1) each
        shared = torch.where(is_positive, others * ((1 - q) / torch.where(is_positive, rest, 1.0)), alike)
        return StepOutput(torch.where(is_top, q, shared), True, top, s.exists)


class _Curves(_ScoreFunction):
    x: Tensor
    y: Tensor
    slope: Tensor

    def __init__(self, step: Curves, k: int) -> None:
        super().__init__(step, k)
        self.line, self.on = step.form == "line", step.on
        knots = Knots.of(step)
        for name in ("x", "y", "slope"):
            self.hold(name, getattr(knots, name))

    def scores(self, s: StepOutput) -> Tensor:
        return s.logits - s.logits.flip(-1) if self.on == "log_odds" else s.probs

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


class _Sigmoid(_ScoreFunction):
    coefficients: Tensor

    def __init__(self, step: Sigmoid, k: int) -> None:
        super().__init__(step, k)
        self.on = step.on
        self.hold("coefficients", step.coefficients if step.scope == "classes" else step.coefficients[:1])

    def scores(self, s: StepOutput) -> Tensor:
        return s.logits if self.on == "logits" else s.probs

    def value(self, scores: Tensor) -> Tensor:
        a, b, constant, square = self.coefficients.unbind(1)  # (k,) or (1,)
        if self.on != "probs":
            return torch.sigmoid(a * scores + constant)
        s = scores.clamp(SCORE_FLOOR, 1 - SCORE_FLOOR)
        inside = a * s.log() - b * torch.log1p(-s) + constant + square * (s / (1 - s)).log() ** 2
        return torch.sigmoid(inside)


def linear_module(step: nn.Module, one_score: bool) -> LinearModule | None:
    """The step as a linear module, or None where it is curved.

    Of one score a sigmoid of the log-odds leaves log-odds, and so is a line; of more classes it is not.
    """
    if isinstance(step, LinearModule):
        return step
    if not one_score or not isinstance(step, _Sigmoid) or step.on == "scores":
        return None
    a, b, constant, square = step.coefficients[0].tolist()
    if step.on == "probs" and (a != b or square):
        return None
    return LinearModule(Linear(np.array(a), np.array([0.0, constant]))).to(step.coefficients.device)


def float_on(device: torch.device) -> torch.dtype:
    return torch.float32 if device.type == "mps" else torch.float64
