"""Neural Clamping: one perturbation for every input and one temperature for every output of a frozen network."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from torch import nn

from calibrant.core.predictions import Predictions
from calibrant.core.torch.layers import freeze
from calibrant.core.torch.loader import Loader
from calibrant.rescorers._base import Rescorer, TrainedRun
from calibrant.rescorers._clamp_options import check_numbers, feasible
from calibrant.rescorers._clamp_passes import OnPass, Passes
from calibrant.rescorers._clamp_report import ClampReport, ClampRow, HeldOut, choose_fit, report
from calibrant.rescorers._clamp_search import CV_POOL, LAM_POOL, NEXT, Search
from calibrant.rescorers._clamped_files import load_clamped
from calibrant.rescorers._clamped_network import ClampedNetwork

__all__ = ["ClampReport", "ClampRow", "ClampedNetwork", "HeldOut", "NeuralClamping", "OnPass", "load_clamped"]

PAPER_POOL = tuple(float(g) for g in np.round(np.arange(21) * 0.05, 2))


@dataclass(frozen=True, kw_only=True)
class NeuralClamping(Rescorer):
    """Fits delta and T of softmax(f(x + delta) / T) by the focal loss + lam ||delta||^2; the network is not changed.

    `what="T"` is temperature scaling with the focal loss, solved exactly; on the calibration rows the joint fit by
    "lbfgs" never ends with a higher objective than that. "sgd" is the paper's recipe, and "efficient" fixes delta by
    one gradient and fits T alone: both promise nothing. A perturbation has as many numbers as an input: with few
    calibration rows it learns them by heart, so judge it on others, or let `lambda_rule="cv"` do so.

    >>> import torch
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
    lambda_rule: Literal["loss", "term", "ece", "cv"] = "loss"
    # a tenth of the loss; so that the penalty at the start is that; by calibration ECE; by rows left out of the fit
    folds: int = 5  # of "cv"
    norm: Literal["squared", "plain"] = "squared"  # plain: what the authors' toolkit does
    what: Literal["both", "delta", "T"] = "both"  # is fitted
    keep: Literal["both", "delta", "T"] = "both"  # of what was fitted, for ablations
    by: Literal["lbfgs", "sgd", "efficient"] = "lbfgs"
    keep_inside: bool = False  # x + delta stays between low and high for every calibration input
    low: float | tuple[float, ...] | None = None  # feasible inputs, one number or one a channel, after normalisation
    high: float | tuple[float, ...] | None = None
    seed: int = 0
    passes: int = 60  # over the calibration batches, at most
    tolerance: float = 1e-4  # stop when a step lowers the objective by less than this share
    epochs: int = 100  # of "sgd", over rows shuffled by the seed
    rate: float = 0.001
    momentum: float = 0.9
    batch: int = 512  # rows in a step of "sgd", and at a time in the fits of "cv"

    title: ClassVar[str] = "Neural Clamping"
    reference: ClassVar[str] = "Tang, Chen, Ho, TMLR 2024"

    def __post_init__(self) -> None:
        super().__post_init__()
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
        if self.by == "efficient" or (self.what == "T" and self.by != "sgd"):
            return 1 if self.what == "T" else 3
        rule = self.lambda_rule if self.lam is None and self.what != "T" else ""
        weights, gammas = {"ece": len(LAM_POOL), "cv": len(CV_POOL)}.get(rule, 1), len(self.gammas)
        # Every fold has a first pass, and for every weight a fit and a look at the rows left out.
        folds = gammas * self.folds * (1 + weights * (self._most(1) + 1)) if rule == "cv" else 0
        return folds + weights * self._most(gammas)

    def _most(self, gammas: int) -> int:
        return 2 + gammas * (self.epochs + 1) if self.by == "sgd" else self.passes + (gammas - 1) * self.next_passes

    @property
    def next_passes(self) -> int:
        """Of a later fit of several, which starts where the last one ended."""
        return max(2, self.passes // NEXT)

    def fit(
        self,
        network: nn.Module,
        loader: Loader,
        *,
        held_out: Loader | None = None,
        on_pass: OnPass | None = None,
    ) -> ClampedNetwork:
        """Learn on batches (inputs, labels) that the network was not trained on; each pass calls `on_pass(count)`.

        With batches `held_out`, which nothing is learnt from, `report.helped` says whether the NLL there is lower than
        that of plain temperature scaling; without them it is None.
        """
        with freeze(network):
            passes = Passes(network, loader, on_pass)
            fits = list(Search(self, passes, feasible(self, passes)).fits())
            best = choose_fit(fits)
            summary = report(self, passes, fits, best, held_out)
        delta = best.point.delta.to(passes.device, passes.dtype)
        clamped = ClampedNetwork(network, delta, best.point.T, report=summary)
        return clamped if self.keep == "both" else clamped.only(self.keep)

    def rescore(self, run: TrainedRun) -> Predictions:
        """Fitted on the part val, inside the range of inputs; the clamp and val.npz are written beside test.npz."""
        low, high = run.input_range
        val, test = run.batches("val", self.batch), run.batches("test", self.batch)
        clamped = replace(self, low=low, high=high).fit(run.network(), val, held_out=test)
        clamped.save(run.out)
        predictions = {part: clamped.predict(run.batches(part, self.batch)) for part in run.judged}
        rescored = {
            part: Predictions.from_logits(p.logits, p.labels, ids=run.predictions(part).ids, allow_few_rows=True)
            for part, p in predictions.items()
        }
        rescored["val"].save(run.out / "val.npz")
        return rescored["test"]
