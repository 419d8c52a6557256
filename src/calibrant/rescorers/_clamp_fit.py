"""Three ways to a perturbation and a temperature: L-BFGS with the exact T, the paper's SGD, and three passes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from calibrant.core.text.number_format import percent
from calibrant.core.torch.focal import focal_rows
from calibrant.rescorers._clamp_passes import Passes, PerturbedOutput
from calibrant.rescorers._focal_temperature import best_temperature, focal_mean

MEMORY = 10  # pairs that L-BFGS remembers
ARMIJO = 1e-4  # share of the promised decrease that a step must keep
TRIES = 5  # shorter and shorter steps
FIRST_STEP = 0.01  # root mean square of the first step: inputs are about 1 wide
T_FLOOR = 1e-2  # of SGD, whose steps could make T negative


@dataclass(frozen=True)
class Point:
    """A perturbation with its temperature and the value of the objective there."""

    look: PerturbedOutput
    T: float
    objective: float

    @property
    def delta(self) -> Tensor:
        return self.look.delta


@dataclass(frozen=True)
class Objective:
    """Mean focal loss of logits / T plus lam ||delta||^2 (or, with the norm "plain", lam ||delta||)."""

    gamma: float
    lam: float
    norm: Literal["squared", "plain"]
    tempered: bool  # with the best T for every perturbation; otherwise T = 1

    def point(self, look: PerturbedOutput) -> Point:
        """The point of a perturbation with its exact T: what is left is a function of the perturbation alone."""
        if not np.isfinite(look.logits).all():
            return Point(look, 1.0, float("inf"))
        return self.at(look, best_temperature(look.logits, look.labels, self.gamma) if self.tempered else 1.0)

    def at(self, look: PerturbedOutput, T: float) -> Point:
        loss = focal_mean(look.logits, look.labels, self.gamma, T)
        return Point(look, T, loss + float(self.penalty(look.delta)))

    def penalty(self, delta: Tensor) -> Tensor:
        return self.lam * (delta.square().sum() if self.norm == "squared" else delta.norm())

    def slope(self, passes: Passes, point: Point) -> Tensor:
        """The gradient by delta. At the best T it is the total one: there, T's own derivative is 0."""
        slope = passes.gradient(point.delta, lambda z, y: focal_rows(z / point.T, y, self.gamma))
        if self.norm == "squared":
            return slope + 2 * self.lam * point.delta
        length = point.delta.norm()
        return slope + self.lam * point.delta / length if length > 0 else slope


@dataclass(frozen=True)
class Box:
    """Bounds of every coordinate of the perturbation."""

    low: Tensor
    high: Tensor

    def project(self, delta: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(delta, self.low), self.high)

    def free(self, delta: Tensor, slope: Tensor) -> Tensor:
        """The coordinates that are not held at a bound."""
        return ((delta > self.low) | (slope < 0)) & ((delta < self.high) | (slope > 0))


Pairs = list[tuple[Tensor, Tensor]]  # steps, and what they did to the gradient


def descend(
    passes: Passes, objective: Objective, start: Point, box: Box, pairs: Pairs, *, limit: int, tolerance: float
) -> tuple[Point, str]:
    """L-BFGS on the perturbation, its T exact at every point; the lowest point, and why it stopped.

    A step costs a pass forward to see whether it is one, and one forward and backward for the next direction. What is
    learnt about the curvature goes into `pairs`, for the next fit that is like this one.
    """
    # scipy's L-BFGS-B takes as many passes (14 to 18, ours 14 to 20, in three fits of 64 numbers), but forgets the
    # curvature between fits, cannot stop at a number of passes, and leaves the device.
    point, before, share = start, None, 1.0
    while passes.count + 2 <= limit:
        slope = objective.slope(passes, point)
        if before is not None:
            _remember(pairs, point.delta - before[0], slope - before[1])
        lowered = _search(passes, objective, box, point, slope, pairs, limit)
        if lowered is None and pairs and passes.count < limit:
            pairs.clear()  # what was learnt about the curvature misleads: once more without it
            lowered = _search(passes, objective, box, point, slope, pairs, limit)
        if lowered is None and passes.count < limit:
            return point, "no step lowers it any more"
        if lowered is None:
            break
        before, lower = (point.delta, slope), point.objective - lowered.objective
        point = lowered
        share = lower / abs(point.objective) if point.objective else 0.0
        if share <= tolerance:
            return point, "it has converged"
    return point, f"it was stopped after {passes.count} passes, when a step still lowered it by {percent(share, 2)}"


@dataclass(frozen=True, kw_only=True)
class Sgd:
    """Options of the paper's recipe."""

    epochs: int
    rate: float
    momentum: float
    batch: int
    seed: int
    what: str


def by_sgd(passes: Passes, objective: Objective, start: Tensor, box: Box, options: Sgd) -> Point:
    """Fit by the paper's recipe: SGD from T = 1, one step per batch of shuffled rows; the last point counts."""
    delta = start.to(passes.device, passes.dtype, copy=True).requires_grad_(options.what != "T")
    T = torch.ones((), device=passes.device, dtype=passes.dtype).requires_grad_(options.what != "delta")
    learnt = [parameter for parameter in (delta, T) if parameter.requires_grad]
    optimizer = torch.optim.SGD(learnt, lr=options.rate, momentum=options.momentum)
    low, high = (wall.to(delta) for wall in (box.low, box.high))
    rows = passes.rows(options.batch)
    for epoch in range(options.epochs):
        for x, y in passes.batches(rows.shuffle(options.seed, epoch)):
            optimizer.zero_grad()
            with torch.enable_grad():
                losses = focal_rows(passes.network(x + delta) / T, y, objective.gamma)
                value = losses.mean() + objective.penalty(delta)
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            with torch.no_grad():
                T.clamp_(min=T_FLOOR)
                delta.copy_(torch.minimum(torch.maximum(delta, low), high))
    return objective.at(passes.look(delta.detach()), float(T.detach()))


def data_driven(passes: Passes, box: Box | None, small: float) -> Tensor:
    """The perturbation that raises the entropy most, to first order, within the feasible range (Theorem 3.2): one pass.

    Where the data fill the range there is no room, and without a range nothing to go to: then small * sign.
    """
    z, labels = passes.zero.logits, passes.zero.labels
    T = best_temperature(z, labels, 0.0)
    rises = passes.gradient(passes.zero.delta, lambda logits, _: _entropy(logits / T)).sign()
    if box is not None:
        room = torch.where(rises > 0, box.high, -box.low)  # both 0 or more
        if (rises * room).any():
            return rises * room
    return small * rises


def logit_gradient(passes: Passes) -> Tensor:
    """Mean gradient of the sum of logits, the start of the authors' toolkit: one pass."""
    return passes.gradient(passes.zero.delta, lambda logits, _: logits.sum(1))


def _entropy(logits: Tensor) -> Tensor:
    logs = logits.log_softmax(1)
    return -(logs.exp() * logs).sum(1)


def _remember(pairs: Pairs, step: Tensor, turn: Tensor) -> None:
    """Remember a step of L-BFGS, unless it saw no upward curvature."""
    if float((step * turn).sum()) > 1e-12 * float(step.norm() * turn.norm()):
        pairs[:] = [*pairs, (step, turn)][-MEMORY:]


def _direction(slope: Tensor, pairs: Pairs) -> Tensor:
    """The L-BFGS direction downhill: the slope divided by the curvature of the remembered pairs."""
    q, shares = slope.clone(), []
    for step, turn in reversed(pairs):
        share = (step * q).sum() / (step * turn).sum()
        q -= share * turn
        shares.append(share)
    if pairs:
        step, turn = pairs[-1]
        q *= (step * turn).sum() / (turn * turn).sum()
    elif q.any():
        q *= FIRST_STEP * q.numel() ** 0.5 / q.norm()
    for (step, turn), share in zip(pairs, reversed(shares), strict=True):
        q += (share - (turn * q).sum() / (step * turn).sum()) * step
    return -q


def _search(
    passes: Passes, objective: Objective, box: Box, point: Point, slope: Tensor, pairs: Pairs, limit: int
) -> Point | None:
    """The first of shorter and shorter steps that lowers the objective enough (Armijo)."""
    free = box.free(point.delta, slope)
    direction = _direction(slope * free, pairs) * free
    for length in _lengths(passes, limit):
        candidate = box.project(point.delta + length.value * direction)
        promised = float((slope * (candidate - point.delta)).sum())
        if promised >= 0:
            return None
        reached = objective.point(passes.look(candidate))
        if reached.objective <= point.objective + ARMIJO * promised:
            return reached
        length.shorten(promised, reached.objective - point.objective)
    return None


@dataclass
class _Length:
    value: float = 1.0

    def shorten(self, promised: float, rise: float) -> None:
        """Shorten to the bottom of the parabola through the values seen, between a tenth and a half."""
        bend = rise - promised
        share = -promised / (2 * bend) if np.isfinite(bend) and bend > 0 else 0.1
        self.value *= min(0.5, max(0.1, share))


def _lengths(passes: Passes, limit: int) -> Iterator[_Length]:
    length = _Length()
    for _ in range(TRIES):
        if passes.count + 1 > limit:
            return
        yield length
