"""Regularisers that are learned while the network trains: what a `MetaStep` moves."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from calibrant import losses
from calibrant.core.errors import InputError
from calibrant.core.torch.focal import focal_rows
from calibrant.core.torch.layers import layer
from calibrant.losses import Loss
from calibrant.training.recipe import Recipe

Reduction = Literal["mean", "sum"]


class LearnedLoss(nn.Module):
    """A training loss with parameters of its own, which held-out data teach.

    `loss` must be twice differentiable: in the logits (and the last layer's weights) and then in the parameters.
    """

    def loss(
        self, logits: Tensor, labels: Tensor, features: Tensor, head: Mapping[str, Tensor], reduction: Reduction
    ) -> Tensor:
        """Loss of a batch with logits (B, k) and features (B, d); `head` are the last layer's weights, by name."""
        raise TypeError(f"{type(self).__name__} does not say its loss: define loss")

    def settle(self) -> None:
        """Clip the parameters to their allowed range; called after every move."""

    def values(self, features: Tensor) -> dict[str, Tensor]:
        """Learned values by name, for the log: one number each, or one per row of features."""
        raise TypeError(f"{type(self).__name__} does not say what it has learned: define values")


class GammaNet(LearnedLoss):
    """A focal loss whose gamma is a function of the features: gamma = |x' W| / tau, x' = A softmax(h A).

    It starts at gamma = 1 for every input. Above `cap` gamma counts as the cap, and can come back. Dividing by tau
    makes steps large: where the log says that gamma is capped, lower the learning rate of the meta step.

    >>> _ = torch.manual_seed(0)
    >>> net = GammaNet(features=512, heads=10)
    >>> sum(p.numel() for p in net.parameters())
    5632
    >>> [round(gamma, 3) for gamma in net(torch.randn(3, 512)).tolist()]
    [1.0, 1.0, 1.0]
    """

    def __init__(self, features: int, heads: int, *, tau: float = 0.01, cap: float = 20.0) -> None:
        super().__init__()
        for name, value in (("features", features), ("heads", heads), ("tau", tau), ("cap", cap)):
            if not value > 0:
                raise InputError(f"GammaNet.{name}", expected="more than 0", got=f"{value:g}", fix="give another value")
        self.tau, self.cap = tau, cap
        start = 0.02 * torch.randn(features, heads, dtype=torch.float64)
        self.A = nn.Parameter(start.float())
        exact = self.A.detach().double()
        # Where the heads are independent, W solves A^T W = tau: every mixture of heads is tau. Else a constant is.
        fits = heads <= features
        W = tau * exact @ torch.linalg.solve(exact.T @ exact, torch.ones(heads, 1, dtype=torch.float64)) if fits else 0
        self.W = nn.Parameter(torch.zeros(features, 1) + torch.as_tensor(W).float())
        self.constant = None if fits else nn.Parameter(torch.full((), tau))

    def forward(self, features: Tensor) -> Tensor:
        """The values gamma (B,) of features (B, d)."""
        free = self.free(features)
        return free - (free.detach() - self.cap).clamp_min(0)  # the gradient passes, so that gamma can come back

    def free(self, features: Tensor) -> Tensor:
        """The values gamma without the cap."""
        if features.dim() != 2 or features.shape[1] != len(self.A):
            raise InputError(
                "GammaNet",
                expected=f"features (B, {len(self.A)})",
                got=f"{tuple(features.shape)}",
                fix="make it with the width of the network's features",
            )
        gates = (features.to(self.A.dtype) @ self.A).softmax(1)  # (B, heads)
        mixture = (gates @ (self.A.T @ self.W)).squeeze(1)
        return (mixture if self.constant is None else mixture + self.constant).abs() / self.tau

    def loss(
        self, logits: Tensor, labels: Tensor, features: Tensor, head: Mapping[str, Tensor], reduction: Reduction
    ) -> Tensor:
        return _reduce(focal_rows(_wide(logits), labels, self(features.detach())), reduction)

    def values(self, features: Tensor) -> dict[str, Tensor]:
        free = self.free(features)
        return {"gamma": free.clamp_max(self.cap), "gamma_capped": (free > self.cap).to(free.dtype).mean()}


class UnitL2(LearnedLoss):
    """Another loss plus sum_j omega_j theta_j^2 over the weights of the last layer, one omega each, 0 at the start.

    Nothing keeps omega positive: a negative one pushes its weight away from 0, and with losses that are means over the
    batch it wins easily. Use sums and clip the gradient, as the recipes do.
    """

    def __init__(self, head: nn.Module, *, base: str = "ce") -> None:
        super().__init__()
        self.base: dict[str, Loss] = {
            "mean": losses.make(base, "mean"),
            "sum": losses.make(base, "sum"),
        }
        # Names of parameters may not hold dots.
        weights = {name.replace(".", "-"): torch.zeros_like(w) for name, w in head.named_parameters()}
        self.omega = nn.ParameterDict(weights)

    def loss(
        self, logits: Tensor, labels: Tensor, features: Tensor, head: Mapping[str, Tensor], reduction: Reduction
    ) -> Tensor:
        total: Tensor = self.base[reduction](logits, labels)
        for name, weight in head.items():
            total = total + (self.omega[name.replace(".", "-")] * weight**2).sum()
        return total

    def values(self, features: Tensor) -> dict[str, Tensor]:
        omega = torch.cat([w.flatten() for w in self.omega.values()])
        return {"omega_mean": omega.mean(), "omega_std": omega.std()}


class Smoothing(LearnedLoss):
    """Label smoothing whose strength is learned: one for all, one per class, or one per pair of classes.

    Strengths start at 0 and stay between 0 and 0.5.
    """

    def __init__(self, classes: int, *, per: Literal["all", "class", "pair"] = "all") -> None:
        super().__init__()
        shape = {"all": (1, 1), "class": (classes, 1), "pair": (classes, classes)}[per]
        self.strength = nn.Parameter(torch.zeros(shape))

    def loss(
        self, logits: Tensor, labels: Tensor, features: Tensor, head: Mapping[str, Tensor], reduction: Reduction
    ) -> Tensor:
        surprise = -_wide(logits).log_softmax(1)  # (B, k)
        of_true = surprise.gather(1, labels[:, None])
        strength = self.strength if len(self.strength) == 1 else self.strength[labels]  # (B or 1, k or 1)
        return _reduce((of_true + strength * (surprise - of_true)).mean(1), reduction)

    @torch.no_grad()
    def settle(self) -> None:
        self.strength.clamp_(0.0, 0.5)

    def values(self, features: Tensor) -> dict[str, Tensor]:
        return {"smoothing_mean": self.strength.mean(), "smoothing_max": self.strength.max()}


def make_learned(recipe: Recipe, network: nn.Module) -> LearnedLoss:
    """The untrained regulariser that a recipe names."""
    m = recipe.meta
    head = layer(network, "head", "meta-regularisation")
    if m.learn == "l2":
        return UnitL2(head, base=recipe.loss)
    if not isinstance(head, nn.Linear):
        got, fix = type(head).__name__, "use a network whose last layer is linear"
        raise InputError(recipe.model, expected="a linear last layer to learn a regulariser", got=got, fix=fix)
    if m.learn == "gamma":
        return GammaNet(head.in_features, m.heads or head.out_features, tau=m.tau, cap=m.cap)
    per: Literal["all", "class", "pair"] = {"smoothing": "all", "class_smoothing": "class"}.get(m.learn, "pair")  # type: ignore[assignment]
    return Smoothing(head.out_features, per=per)


def _reduce(rows: Tensor, reduction: Reduction) -> Tensor:
    return rows.mean() if reduction == "mean" else rows.sum()


def _wide(logits: Tensor) -> Tensor:
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
