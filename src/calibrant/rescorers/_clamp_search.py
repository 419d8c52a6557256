"""The fits of Neural Clamping: one for every gamma and weight of the penalty that is tried."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from calibrant.core.errors import InputError
from calibrant.rescorers._clamp_cv import held_out_losses
from calibrant.rescorers._clamp_fit import (
    Box,
    Objective,
    Pairs,
    Point,
    Sgd,
    by_sgd,
    data_driven,
    descend,
    logit_gradient,
)
from calibrant.rescorers._clamp_options import CV_POOL, LAM_POOL, ClampOptions
from calibrant.rescorers._clamp_passes import Passes, PerturbedOutput
from calibrant.rescorers._clamp_report import HeldOut
from calibrant.rescorers._focal_temperature import focal_mean

LAM_SHARE = 0.1  # of the loss before: the paper's "1/10 of the initial loss"
SLACK = 1e-4  # of the range of inputs, by which rounding may take them out of it


@dataclass(frozen=True, kw_only=True)
class ClampFit:
    """One fit: its point, why it ended there, and the point without a perturbation."""

    gamma: float
    lam: float | None  # None: rows left out of the fits were served best by no perturbation
    point: Point
    nothing: Point
    why: str = ""
    held_out: tuple[HeldOut, ...] = ()


@dataclass
class _WarmStart:
    """Start of the fit for the next gamma: its perturbation, pass limit, and curvature learned so far."""

    start: Tensor
    limit: int  # passes, counted from the beginning of all
    look: PerturbedOutput | None = None
    pairs: Pairs = field(default_factory=list)


@dataclass(frozen=True)
class _Weight:
    """A weight of the penalty; None: no perturbation at all. The same `share` of the loss makes fits that are alike."""

    share: float
    lam: float | None
    held_out: tuple[HeldOut, ...] = ()


class ClampSearch:
    """The fits of one call, on one network."""

    def __init__(self, options: ClampOptions, passes: Passes) -> None:
        self.options, self.passes = options, passes
        box = find_room(options, passes)
        wide = torch.full(passes.shape, torch.inf, dtype=torch.float64)
        self.walls = box if box is not None and options.keep_inside else Box(-wide, wide)
        self.start = self.walls.project(self._start(box))
        self.spent = passes.count

    def fits(self) -> Iterator[ClampFit]:
        warm: dict[float, _WarmStart] = {}
        for gamma in self.options.gammas:
            for weight in self._weights(gamma):
                objective = self._objective(gamma, weight.lam or 0.0)
                point, why = nothing, _ = objective.point(self.passes.zero), ""
                if weight.lam is not None:
                    last = warm.setdefault(weight.share, self._warm(self.passes))
                    point, why = self._one(self.passes, objective, last)
                yield ClampFit(
                    gamma=gamma, lam=weight.lam, point=point, nothing=nothing, why=why, held_out=weight.held_out
                )

    def _one(self, passes: Passes, objective: Objective, warm: _WarmStart) -> tuple[Point, str]:
        """The best point of one fit, and why it ended there."""
        o, nothing = self.options, objective.point(passes.zero)
        if o.by == "sgd":
            begin = passes.zero.delta if o.what == "T" else warm.start
            recipe = Sgd(epochs=o.epochs, rate=o.rate, momentum=o.momentum, batch=o.batch, seed=o.seed, what=o.what)
            return by_sgd(passes, objective, begin, self.walls, recipe), ""
        if o.what == "T":
            return nothing, ""
        reached = objective.point(warm.look or passes.look(warm.start))
        if o.by == "efficient":  # the perturbation is fixed: only T is fitted
            warm.look = reached.look
            return reached, ""
        reached, why = descend(
            passes, objective, reached, self.walls, warm.pairs, limit=warm.limit, tolerance=o.tolerance
        )
        warm.limit, warm.look = passes.count + o.next_passes, reached.look
        return min(reached, nothing, key=lambda point: point.objective), why

    # -- where it starts ------------------------------------------------------------------------

    def _warm(self, passes: Passes) -> _WarmStart:
        spent = self.spent if passes is self.passes else 1
        return _WarmStart(
            self.start, passes.count + self.options.passes - spent, None if self.start.any() else passes.zero
        )

    def _start(self, box: Box | None) -> Tensor:
        o, passes = self.options, self.passes
        if o.by == "efficient" and o.what != "T":
            return data_driven(passes, box, o.init_scale)
        if o.init == "zero" or (o.what == "T" and o.lambda_rule != "term"):
            return passes.zero.delta
        if o.init == "data":
            return data_driven(passes, box, o.init_scale)
        if o.init == "logit_grad":
            return logit_gradient(passes)
        generator = torch.Generator().manual_seed(o.seed)
        return o.init_scale * torch.randn(passes.shape, generator=generator, dtype=torch.float64)

    # -- how much the penalty weighs ------------------------------------------------------------

    def _objective(self, gamma: float, lam: float) -> Objective:
        return Objective(gamma, lam, self.options.norm, self.options.what != "delta")

    def _weights(self, gamma: float) -> list[_Weight]:
        """The weight of the penalty, or several to choose from."""
        o, zero = self.options, self.passes.zero
        if o.by == "efficient":  # nothing is weighed against a perturbation that is fixed
            return [_Weight(0.0, 0.0)]
        if o.lam is not None:
            return [_Weight(0.0, o.lam)]
        loss = focal_mean(zero.logits, zero.labels, gamma)
        if o.lambda_rule == "ece" and o.what != "T":
            return [_Weight(share, share * loss) for share in LAM_POOL]
        if o.lambda_rule == "cv" and o.what != "T":
            return [self._cross_validate(gamma, loss)]
        return [_Weight(LAM_SHARE, LAM_SHARE * loss / (self._term(gamma) if o.lambda_rule == "term" else 1.0))]

    def _term(self, gamma: float) -> float:
        term = float(self._objective(gamma, 1.0).penalty(self.start))
        if not term:
            fix = "use lambda_rule='loss', or another init"
            raise InputError("lambda_rule='term'", expected="a start other than 0", got="one at 0", fix=fix)
        return term

    def _cross_validate(self, gamma: float, loss: float) -> _Weight:
        """The weight with the lowest loss on rows that were left out of the fit."""

        def fits(passes: Passes, lams: Sequence[float]) -> list[Point]:
            return [self._one(passes, self._objective(gamma, lam), self._warm(passes))[0] for lam in lams]

        o, lams = self.options, [share * loss for share in CV_POOL]
        trials = held_out_losses(self.passes, gamma, lams, fits, folds=o.folds, seed=o.seed, batch=o.batch)
        best = int(np.argmin([trial.loss for trial in trials]))
        return _Weight(CV_POOL[best - 1], trials[best].lam, tuple(trials))


def find_room(o: ClampOptions, passes: Passes) -> Box | None:
    """The largest perturbation of every coordinate that keeps all inputs of the calibration set in range."""
    if o.low is None or o.high is None:
        if o.keep_inside or o.init == "data":
            option = "keep_inside" if o.keep_inside else "init='data'"
            fix = "give low and high after normalisation: (0 - mean) / std and (1 - mean) / std for images"
            raise InputError(option, expected="the feasible range of inputs", got="no low or no high", fix=fix)
        return None
    least, most = (_spread(value, passes.shape, name) for value, name in ((o.low, "low"), (o.high, "high")))
    slack = SLACK * (most - least)
    if not ((passes.low >= least - slack) & (passes.high <= most + slack)).all():
        got = f"inputs from {float(passes.low.min()):.4g} to {float(passes.high.max()):.4g}"
        fix = "give the range after normalisation"
        raise InputError("low and high", expected="a range that holds all calibration inputs", got=got, fix=fix)
    return Box((least - passes.low).clamp(max=0), (most - passes.high).clamp(min=0))


def _spread(value: float | tuple[float, ...], shape: torch.Size, name: str) -> Tensor:
    """One number, or one a channel, for every coordinate."""
    numbers = torch.tensor(value, dtype=torch.float64).reshape(-1)
    if len(numbers) > 1 and (not shape or len(numbers) != shape[0]):
        expected = f"one number or {shape[0] if shape else 1}, one a channel"
        raise InputError(name, expected=expected, got=str(len(numbers)), fix="give one a channel")
    return numbers.reshape(-1, *[1] * (len(shape) - 1)).expand(shape) if shape else numbers[0]
