"""One step of meta-learning: move the regulariser so that the network's next step helps held-out data.

One look-ahead step theta+ = theta - eta c grad L(theta, phi) makes the objective V(theta+) a function of what is
learned, phi; c clips the gradient as the network's own is, and is held constant. The gradient in phi is -eta c d/dphi
of the slope of L along v = grad V(theta+). That slope needs the logits' slope only, which one forward-mode pass gives:
no second-order graph of the network is ever built.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from calibrant import losses
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.torch.layers import layer, record_inputs
from calibrant.training.forward_mode import OutputRecorder, OutputReplay, slope_along
from calibrant.training.learned_losses import LearnedLoss, Reduction

Weights = dict[str, Tensor]

CHOICES = {"lookahead": ("head", "full"), "lookahead_step": ("taken", "raw"), "by": ("jvp", "double_backward")}


class MetaStepResult(NamedTuple):
    """Result of a step: back-propagate `loss`, then move the network."""

    loss: Tensor  # of the training batch, with the regulariser as it is now
    logits: Tensor
    features: Tensor
    objective: Tensor  # on the meta batch, after the look-ahead
    objective_before: Tensor  # and before: where it is lower, the step ahead is too long to learn from


class MetaStep:
    """One step of meta-regularisation, for anybody's loop.

        step = MetaStep(network, GammaNet(features=512, heads=10), objective="ce + 0.5*sece")
        for (x, labels), (meta_x, meta_labels) in zip(train, endless(meta)):
            optimizer.zero_grad()
            step(x, labels, meta_x, meta_labels, lr=0.1).loss.backward()
            optimizer.step()  # a loop that clips gradients says so: MetaStep(..., clip_norm=2.0)

    `objective` is a loss or a sum of losses, as everywhere: "1*sece" is calibration alone, the paper's equation.
    The regulariser moves by its own Adam (`step.optimizer`), the network by yours. `lookahead` goes through the last
    layer (`head`, by name) or through all weights ("full"); `by="double_backward"` is the reference that the fast way
    is tested against. The step ahead is plain gradient descent, without momentum and weight decay;
    `lookahead_step="taken"` clips its gradient to `clip_norm`, as your loop does (0 is no clipping); "raw" never does,
    as in the authors' code (the plan meta-regularization compares them).
    """

    def __init__(
        self,
        network: nn.Module,
        learned: LearnedLoss,
        *,
        objective: str = "ce + 0.5*sece",
        lookahead: Literal["head", "full"] = "head",
        lookahead_step: Literal["taken", "raw"] = "taken",
        clip_norm: float = 0.0,
        by: Literal["jvp", "double_backward"] = "jvp",
        lr: float = 1e-3,
        reduction: Reduction = "mean",
        head: str = "head",
        forward: Callable[[Tensor], Tensor] | None = None,
        autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
        average: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        """`forward`, `autocast` and `average` are for several processes and mixed precision: how to call the network
        so that gradients are shared, in which precision, and how processes share another tensor."""
        for value, (name, known) in zip((lookahead, lookahead_step, by), CHOICES.items(), strict=True):
            if value not in known:
                raise unknown_name(name, value, known)
        if not lr > 0:
            raise InputError("MetaStep.lr", expected="more than 0", got=f"{lr:g}", fix="use 1e-3")
        if not clip_norm >= 0:
            fix = "use the norm that your loop clips gradients to, or 0 for none"
            raise InputError("MetaStep.clip_norm", expected="0 or more", got=f"{clip_norm:g}", fix=fix)
        self.network, self.learned = network, learned
        self.head = layer(network, head, "meta-regularisation")
        self._prefix = f"{head}."
        self.objective = losses.make(objective)
        self.lookahead, self.by, self.reduction = lookahead, by, reduction
        self.clip_norm = clip_norm if lookahead_step == "taken" else 0.0
        self.optimizer = torch.optim.Adam(learned.parameters(), lr=lr)
        self._forward = forward or network
        self._autocast, self._average = autocast, average or (lambda tensor: tensor)

    def __call__(self, x: Tensor, labels: Tensor, meta_x: Tensor, meta_labels: Tensor, lr: float) -> MetaStepResult:
        """`lr` is the network's rate in this step. Gradients of the network are added to: clear them before."""
        self.objective.to(x.device)
        kind = next(self.network.parameters()).dtype
        x, meta_x = x.to(kind), meta_x.to(kind)
        seed = int(torch.randint(2**62, ()))  # dropout must fall on the same units when the batch is looked at again
        batch = _Batch(x=x, labels=labels, meta_x=meta_x, meta_labels=meta_labels, lr=lr, seed=seed)
        slopes, objectives, output = self._by_jvp(batch) if self.by == "jvp" else self._by_double_backward(batch)
        for parameter, slope in zip(self.learned.parameters(), slopes, strict=True):
            parameter.grad = self._average(slope)
        self.optimizer.step()
        self.learned.settle()
        self.learned.requires_grad_(False)  # the network's own step does not move it
        head = dict(self.head.named_parameters())
        loss = self.learned.loss(output.logits, labels, output.features, head, self.reduction)
        self.learned.requires_grad_(True)
        return MetaStepResult(loss, output.logits, output.features, *objectives)

    # -- the gradient of the objective with respect to what is learned -----------------------------

    def _by_jvp(self, batch: "_Batch") -> tuple[list[Tensor], "_Objectives", "_NetworkOutput"]:
        full, remembered = self.lookahead == "full", OutputRecorder()
        with remembered if full else nullcontext():
            output = self._look(batch, count=not full)
        weights = self._looking_ahead()
        moved, rate = self._ahead(batch, output, weights)
        ahead = {name: w.detach().requires_grad_() for name, w in moved.items()}
        if full:
            del output  # the graph of the training batch goes before that of the meta batch comes
        objective, before = self._held_out_objective(batch, ahead)
        v = dict(zip(ahead, map(self._average, _slopes(objective, ahead.values())), strict=True))
        weights = {name: w.detach() for name, w in weights.items()}
        # In full precision: forward mode and autocast do not go together.
        if full:
            with OutputReplay(remembered.outputs):
                output = self._look(batch, count=True)
            torch.manual_seed(batch.seed)
            along = slope_along(lambda w: self._call(w, batch.x), weights, v, remembered.outputs)  # (B, k)
        else:
            along = slope_along(lambda w: functional_call(self.head, w, (output.features,)), weights, v, [])
        # The slope of the training loss along v, as a function of what is learned.
        head = {name: w.requires_grad_() for name, w in self._of_head(weights).items()}
        logits = output.logits.detach().requires_grad_()
        loss = self.learned.loss(logits, batch.labels, output.features, head, self.reduction)
        slopes = torch.autograd.grad(loss, [logits, *head.values()], create_graph=True, materialize_grads=True)
        along_v = [along.to(logits.dtype), *self._of_head(v).values()]
        slope = torch.stack([(slope * a).sum() for slope, a in zip(slopes, along_v, strict=True)]).sum()
        return _slopes(-rate * slope, self.learned.parameters()), (objective.detach(), before), output

    def _by_double_backward(self, batch: "_Batch") -> tuple[list[Tensor], "_Objectives", "_NetworkOutput"]:
        output = self._look(batch, count=True)
        ahead, _ = self._ahead(batch, output, self._looking_ahead(), second_order=True)
        objective, before = self._held_out_objective(batch, ahead)
        slopes = _slopes(objective, self.learned.parameters(), keep=True)
        return slopes, (objective.detach(), before), output

    def _look(self, batch: "_Batch", *, count: bool) -> "_NetworkOutput":
        """Run the network on the training batch; batch norm counts it, or not."""
        torch.manual_seed(batch.seed)
        with record_inputs(self.head) as recorded, self._autocast():
            logits = self._forward(batch.x) if count else self._call(dict(self.network.named_parameters()), batch.x)
        return _NetworkOutput(logits, recorded[0].detach().to(batch.x.dtype))

    def _looking_ahead(self) -> Weights:
        """The weights that take the look-ahead step."""
        if self.lookahead == "full":
            return {name: w for name, w in self.network.named_parameters() if w.requires_grad}
        return {name: w.detach().requires_grad_() for name, w in self.head.named_parameters()}

    def _ahead(
        self, batch: "_Batch", output: "_NetworkOutput", weights: Weights, second_order: bool = False
    ) -> tuple[Weights, Tensor | float]:
        """The weights after one step without momentum and weight decay, and the rate of that step, clipping counted."""
        logits = output.logits
        if self.lookahead == "head":
            with self._autocast():
                logits = functional_call(self.head, weights, (output.features,))
        loss = self.learned.loss(logits, batch.labels, output.features, self._of_head(weights), self.reduction)
        gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order)
        slopes = [self._average(slope) for slope in gradients]
        rate: Tensor | float = batch.lr
        if self.clip_norm:
            norm = torch.stack([slope.detach().norm() for slope in slopes]).norm()
            rate *= (self.clip_norm / (norm + 1e-6)).clamp_max(1)  # as torch clips
        return {name: w - rate * slope for (name, w), slope in zip(weights.items(), slopes, strict=True)}, rate

    def _held_out_objective(self, batch: "_Batch", ahead: Weights) -> "_Objectives":
        """The objective on the meta batch at the weights ahead, and at the weights before."""
        with self._autocast():
            torch.manual_seed(batch.seed + 1)  # dropout falls on the same units before and after
            with torch.no_grad(), record_inputs(self.head) as recorded:
                before = self.objective(self._call({}, batch.meta_x), batch.meta_labels)
            if self.lookahead == "full":
                torch.manual_seed(batch.seed + 1)
                logits = self._call(ahead, batch.meta_x)
            else:  # only the last layer needs a gradient
                logits = functional_call(self.head, ahead, (recorded[0],))
        return self.objective(logits, batch.meta_labels), before

    def _call(self, weights: Weights, x: Tensor) -> Tensor:
        """Run the network with other weights; batch norm counts into copies."""
        copies = {name: buffer.clone() for name, buffer in self.network.named_buffers()}
        logits: Tensor = functional_call(self.network, {**weights, **copies}, (x,))
        return logits

    def _of_head(self, weights: Weights) -> Weights:
        """The weights of the last layer, by their names in that layer."""
        if self.lookahead == "head":
            return weights
        start = len(self._prefix)
        return {name[start:]: w for name, w in weights.items() if name.startswith(self._prefix)}


_Objectives = tuple[Tensor, Tensor]  # on the meta batch: after the look-ahead, and before


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """The two batches of a step, the network's rate in it, and the seed of its dropout."""

    x: Tensor
    labels: Tensor
    meta_x: Tensor
    meta_labels: Tensor
    lr: float
    seed: int


class _NetworkOutput(NamedTuple):
    """Output of the network on the training batch."""

    logits: Tensor  # with the graph of the network
    features: Tensor  # (B, d), without


def _slopes(value: Tensor, parameters: Iterable[Tensor], *, keep: bool = False) -> list[Tensor]:
    """Gradients; 0 for a parameter that the value does not depend on."""
    return list(torch.autograd.grad(value, list(parameters), retain_graph=keep, materialize_grads=True))
