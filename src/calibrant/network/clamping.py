"""Neural Clamping: one perturbation for every input and one temperature for every output of a frozen network."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.core.catalogue import check_options
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.models._layers import frozen
from calibrant.network._batches import Loader
from calibrant.network._clamp_fit import Box, Objective, Pairs, Point, Sgd, by_sgd, data_driven, descend, logit_gradient
from calibrant.network._clamp_options import check_numbers, feasible
from calibrant.network._clamp_passes import Look, OnPass, Passes
from calibrant.network._clamped import Clamped, ClampReport, ClampRow, load_clamped
from calibrant.network._focal_temperature import HIGH, LOW, focal_mean

__all__ = ["ClampReport", "ClampRow", "Clamped", "NeuralClamping", "load_clamped"]

PAPER_POOL = tuple(float(g) for g in np.round(np.arange(21) * 0.05, 2))
LAM_SHARE = 0.1  # of the loss before: the paper's "1/10 of the initial loss"
LAM_POOL = (0.01, 0.1, 1.0)  # shares that lambda_rule="ece" tries
NEXT = 12  # later fits of a pool start where the last one ended, and get this part of the passes


@dataclass(frozen=True, kw_only=True)
class NeuralClamping:
    """Fits delta and T of softmax(f(x + delta) / T) by the focal loss + lam ||delta||^2; the network stays as it is.

    `what="T"` is temperature scaling with the focal loss, solved exactly; the joint fit by "lbfgs" or "efficient" never
    ends with a higher objective than that. "sgd" is the paper's recipe and promises nothing. A perturbation has as many
    numbers as an input: with few calibration rows it learns them by heart, so judge it on others.

    >>> rows = [(torch.tensor([[2.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))]  # right 3 times in 4: 2 / T = ln 3
    >>> clamped = NeuralClamping(gamma=0.0, what="T").fit(nn.Identity(), rows)
    >>> round(clamped.report.T, 6), clamped.report.passes
    (1.820478, 1)
    """

    gamma: float = 1.0  # of the focal loss; 0 is cross-entropy
    gamma_pool: str | tuple[float, ...] | None = None  # "paper", or values: the one with the smallest calibration ECE
    init: Literal["random", "data", "logit_grad", "zero"] = "random"
    init_scale: float = 0.001  # of the random start, and of a data-driven one where the data leave no room
    lam: float | None = None  # weight of the penalty; None: by the rule
    lambda_rule: Literal["loss", "term", "ece"] = "loss"  # a tenth of the loss; of it at the start; by calibration ECE
    norm: Literal["squared", "plain"] = "squared"  # plain: what the authors' toolkit does
    what: Literal["both", "delta", "T"] = "both"
    by: Literal["lbfgs", "sgd", "efficient"] = "lbfgs"
    keep_inside: bool = False  # x + delta stays between low and high for every calibration input
    low: float | tuple[float, ...] | None = None  # feasible inputs, one number or one a channel, after normalisation
    high: float | tuple[float, ...] | None = None
    seed: int = 0
    passes: int = 25  # over the calibration batches, at most
    tolerance: float = 1e-4  # stop when a step lowers the objective by less than this share
    epochs: int = 100  # of "sgd", with batches as the loader gives them (the paper: 512, shuffled)
    rate: float = 0.001
    momentum: float = 0.9

    title: ClassVar[str] = "Neural Clamping"
    reference: ClassVar[str] = "Tang, Chen, Ho, TMLR 2024"

    def __post_init__(self) -> None:
        check_options(self)
        check_numbers(self)

    @property
    def gammas(self) -> tuple[float, ...]:
        """What is tried, from small to large: neighbours are alike, so that each fit starts where the last ended."""
        if self.gamma_pool is None:
            return (self.gamma,)
        return PAPER_POOL if self.gamma_pool == "paper" else tuple(sorted(set(map(float, self.gamma_pool))))

    @property
    def most_passes(self) -> int:
        """Over the calibration batches, for progress bars."""
        fits = len(self.gammas) * (len(LAM_POOL) if self.lam is None and self.lambda_rule == "ece" else 1)
        if self.what == "T" and self.by != "sgd":
            return 1
        if self.by == "sgd":
            return 2 + fits * (self.epochs + 1)
        return self.passes + (fits - 1) * self._next_passes if self.by == "lbfgs" else 3

    def fit(self, network: nn.Module, loader: Loader, *, on_pass: OnPass | None = None) -> Clamped:
        """Learn on batches (inputs, labels) that the network was not trained on; each pass calls `on_pass(count)`."""
        with frozen(network):
            passes = Passes(network, loader, on_pass)
            box = feasible(self.low, self.high, passes)
            rows = list(self._fits(passes, box))
        row, found = rows[int(np.argmin([row.ece for row, _ in rows]))]
        report = self._report(passes, row, found, tuple(row for row, _ in rows))
        return Clamped(network, found.delta.to(passes.device, passes.dtype), found.T, report=report)

    # -- the fits -------------------------------------------------------------------------------

    def _fits(self, passes: Passes, box: Box | None) -> Iterator[tuple[ClampRow, Point]]:
        """One fit for every gamma and weight that is tried."""
        wide = torch.full(passes.shape, torch.inf, dtype=torch.float64)
        walls = box if box is not None and self.keep_inside else Box(-wide, wide)
        start = walls.project(self._start(passes, box))
        warm = _Warm(start, self.passes, passes.zero if not start.any() else None)
        for gamma in self.gammas:
            for lam in self._weights(passes, gamma, start):
                objective = Objective(gamma, lam, self.norm, self.what != "delta")
                nothing = objective.point(passes.zero)
                found, why = self._one(passes, objective, nothing, walls, warm)
                yield self._row(objective, found, nothing, why), found

    def _one(
        self, passes: Passes, objective: Objective, nothing: Point, walls: Box, warm: "_Warm"
    ) -> tuple[Point, str]:
        """The best point of one fit, and why it ended there; `nothing` is the one without a perturbation."""
        if self.by == "sgd":
            begin = passes.zero.delta if self.what == "T" else warm.start
            return by_sgd(passes, objective, begin, walls, Sgd(self.epochs, self.rate, self.momentum, self.what)), ""
        if self.what == "T":
            return nothing, ""
        found, why = objective.point(warm.look or passes.look(warm.start)), ""
        if self.by == "lbfgs":
            found, why = descend(
                passes, objective, found, walls, warm.pairs, limit=warm.limit, tolerance=self.tolerance
            )
            warm.limit = passes.count + self._next_passes
        warm.look = found.look
        return min(found, nothing, key=lambda point: point.objective), why

    def _start(self, passes: Passes, box: Box | None) -> Tensor:
        if self.by == "efficient" and self.what != "T":
            return data_driven(passes, box, self.init_scale)
        if self.init == "zero" or (self.what == "T" and self.lambda_rule != "term"):
            return passes.zero.delta
        if self.init == "data":
            return data_driven(passes, box, self.init_scale)
        if self.init == "logit_grad":
            return logit_gradient(passes)
        generator = torch.Generator().manual_seed(self.seed)
        return self.init_scale * torch.randn(passes.shape, generator=generator, dtype=torch.float64)

    def _weights(self, passes: Passes, gamma: float, start: Tensor) -> tuple[float, ...]:
        """The weight of the penalty, or several to choose from."""
        if self.lam is not None:
            return (self.lam,)
        loss = focal_mean(passes.zero.logits, passes.zero.labels, gamma)
        if self.lambda_rule == "ece" and self.what != "T":
            return tuple(share * loss for share in LAM_POOL)
        if self.lambda_rule == "term":
            term = float(Objective(gamma, 1.0, self.norm, False).penalty(start))
            if not term:
                fix = "use lambda_rule='loss', or another init"
                raise InputError("lambda_rule='term'", expected="a start other than 0", got="one at 0", fix=fix)
            return (LAM_SHARE * loss / term,)
        return (LAM_SHARE * loss,)

    # -- what is told ---------------------------------------------------------------------------

    @property
    def _next_passes(self) -> int:
        return max(2, self.passes // NEXT)

    def _row(self, objective: Objective, found: Point, nothing: Point, why: str) -> ClampRow:
        p = predicted(found)
        return ClampRow(
            gamma=objective.gamma,
            lam=objective.lam,
            T=found.T,
            delta_norm=float(found.delta.norm()),
            objective=found.objective,
            objective_temperature=nothing.objective,
            ece=make("ece")(p),
            entropy=make("entropy")(p),
            stopped=why,
        )

    def _report(self, passes: Passes, row: ClampRow, found: Point, rows: tuple[ClampRow, ...]) -> ClampReport:
        z, labels = passes.zero.logits, passes.zero.labels
        alone = Objective(row.gamma, row.lam, self.norm, True).point(passes.zero)
        return ClampReport(
            gamma=row.gamma,
            lam=row.lam,
            T=found.T,
            T_alone=alone.T,
            delta_norm=row.delta_norm,
            objective_before=focal_mean(z, labels, row.gamma),
            objective_temperature=alone.objective,
            objective=found.objective,
            ece_before=make("ece")(Predictions(z, labels, "logits")),
            ece_temperature=make("ece")(predicted(alone)),
            ece=row.ece,
            n=len(labels),
            k=z.shape[1],
            passes=passes.count,
            helped=row.delta_norm > 0 and found.objective < row.objective_temperature,
            diagnosis=self._diagnosis(row, found),
            options={key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()},
            rows=rows if len(rows) > 1 else (),
        )

    def _diagnosis(self, row: ClampRow, found: Point) -> str:
        gain = 1 - row.objective / row.objective_temperature if row.objective_temperature > 0 else 0.0
        other = "temperature alone" if self.what != "delta" else "the network as it is"
        if self.what == "T":
            said = "Temperature alone, as asked."
        elif gain > 0 and row.delta_norm > 0:
            said = f"The perturbation lowers the objective by {gain:.2%} beyond {other}."
        elif gain < 0:
            said = f"{other[0].upper()}{other[1:]} has a lower objective, by {-gain:.2%}: fit by lbfgs, or for longer."
        else:
            said = f"The perturbation brings nothing: this is {other}."
        if not LOW * 1.001 < found.T < HIGH * 0.999:
            said += f" T is at the end of its range, {LOW} to {HIGH:g}: these rows do not tell one."
        return f"{said} The fit ended: {row.stopped}." if row.stopped else said


@dataclass
class _Warm:
    """Where the next of several fits begins, and what it need not learn again."""

    start: Tensor
    limit: int  # passes, counted from the beginning of all
    look: Look | None = None
    pairs: Pairs = field(default_factory=list)


def predicted(point: Point) -> Predictions:
    return Predictions(point.look.logits / point.T, point.look.labels, "logits")
