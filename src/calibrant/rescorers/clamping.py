"""Neural Clamping: one perturbation for every input and one temperature for every output of a frozen network."""

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import nn

from calibrant.core.predictions import Predictions
from calibrant.core.torch.layers import freeze
from calibrant.core.torch.loader import Loader
from calibrant.rescorers._base import TrainedRun
from calibrant.rescorers._clamp_options import ClampOptions
from calibrant.rescorers._clamp_passes import OnPass, Passes
from calibrant.rescorers._clamp_report import ClampReport, ClampRow, HeldOut
from calibrant.rescorers._clamp_search import ClampSearch
from calibrant.rescorers._clamp_summary import choose_fit, summarise
from calibrant.rescorers._clamped_network import ClampedNetwork, load_clamped

__all__ = ["ClampReport", "ClampRow", "ClampedNetwork", "HeldOut", "NeuralClamping", "OnPass", "load_clamped"]


@dataclass(frozen=True, kw_only=True)
class NeuralClamping(ClampOptions):
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

    title: ClassVar[str] = "Neural Clamping"
    reference: ClassVar[str] = "Tang, Chen, Ho, TMLR 2024"

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
            fits = list(ClampSearch(self, passes).fits())
            best = choose_fit(fits)
            summary = summarise(self, passes, fits, best, held_out)
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
            part: Predictions.from_logits(p.logits, p.labels, ids=run.predictions(part).ids)
            for part, p in predictions.items()
        }
        rescored["val"].save(run.out / "val.npz")
        return rescored["test"]
