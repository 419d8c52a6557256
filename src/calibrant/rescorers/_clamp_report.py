"""Report of a fit of Neural Clamping, in numbers and in a sentence."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import percent, sentence
from calibrant.core.torch.loader import Loader
from calibrant.rescorers._clamp_fit import Objective, Point
from calibrant.rescorers._focal_temperature import HIGH, LOW, best_temperature, focal_mean, row_losses

if TYPE_CHECKING:
    from calibrant.rescorers._clamp_passes import Passes
    from calibrant.rescorers._clamp_search import ClampFit
    from calibrant.rescorers.clamping import NeuralClamping


NORMAL_95 = 1.959964  # standard errors to either side of a mean of many rows


@dataclass(frozen=True, kw_only=True)
class ClampRow:
    """One fit, with one gamma and one weight of the penalty; measures are those of the calibration rows."""

    gamma: float
    lam: float | None  # of the penalty; None where lambda_rule="cv" kept no perturbation
    T: float
    delta_norm: float
    objective: float
    objective_temperature: float  # with no perturbation, at the T that this fit would then take
    ece: float  # 15 bins
    entropy: float
    stopped: str  # why


@dataclass(frozen=True)
class HeldOut:
    """How one weight does on rows that were left out of the fits."""

    gamma: float
    lam: float | None  # None: no perturbation at all
    T: float  # the best one for these rows
    loss: float  # mean focal loss there; no penalty in it


@dataclass(frozen=True, kw_only=True)
class ClampReport:
    """How the fit went, on the calibration rows. The objective is the mean focal loss plus the penalty."""

    gamma: float
    lam: float | None  # of the penalty; None where lambda_rule="cv" kept no perturbation
    T: float
    T_alone: float  # of temperature scaling with the same loss
    delta_norm: float
    objective_before: float  # of the uncalibrated network
    objective_temperature: float  # of temperature scaling with the same loss
    objective: float
    ece_before: float  # 15 bins
    ece_temperature: float
    ece: float
    n: int
    k: int
    passes: int  # over the calibration rows
    helped: bool | None  # on held-out rows, beyond plain temperature scaling; None where there were none
    diagnosis: str
    options: dict[str, Any]  # of NeuralClamping
    rows: tuple[ClampRow, ...] = ()  # where several gammas or weights were tried
    held_out: tuple[HeldOut, ...] = ()  # the weights that lambda_rule="cv" compared
    judged: "ClampComparison | None" = None  # on held-out rows, if there were any


@dataclass(frozen=True)
class ClampComparison:
    """A clamp and plain temperature scaling, fitted on the same rows, on rows that neither has seen."""

    n: int
    nll: float
    nll_temperature: float
    low: float  # 95 % interval of the difference, clamp minus temperature, paired by row
    high: float

    @property
    def helped(self) -> bool:
        return self.high < 0

    @property
    def words(self) -> str:
        result = "it helped" if self.helped else "it did harm" if self.low > 0 else "inconclusive"
        numbers = f"NLL {self.nll:.4f}, plain temperature scaling {self.nll_temperature:.4f}"
        change = f"change {self.low:+.4f} to {self.high:+.4f}"
        return f"On {self.n:,} rows that no fit has seen: {numbers} ({change}): {result}."


def judge(passes: "Passes", point: Point, held_out: Loader) -> ClampComparison:
    """The clamp against plain temperature scaling (cross-entropy, no perturbation): two passes over held-out rows."""
    T = best_temperature(passes.zero.logits, passes.zero.labels, 0.0)
    clamped, plain = passes.look(point.delta, held_out), passes.look(passes.zero.delta, held_out)
    ours, theirs = (row_losses(look.logits / by, look.labels) for look, by in ((clamped, point.T), (plain, T)))
    change = ours - theirs
    mean, error = float(change.mean()), float(change.std(ddof=1)) / len(change) ** 0.5 if len(change) > 1 else np.inf
    reach = NORMAL_95 * error
    return ClampComparison(len(change), float(ours.mean()), float(theirs.mean()), mean - reach, mean + reach)


def choose_fit(fits: Sequence["ClampFit"]) -> "ClampFit":
    """The fit with the smallest ECE on the calibration rows."""
    return min(fits, key=lambda fit: ece(predict_rows(fit.point)))


def report(
    options: "NeuralClamping",
    passes: "Passes",
    fits: Sequence["ClampFit"],
    best: "ClampFit",
    held_out: Loader | None = None,
) -> ClampReport:
    z, labels, count = passes.zero.logits, passes.zero.labels, passes.count
    judged = None if held_out is None else judge(passes, best.point, held_out)
    row, point = row_of(best), best.point
    alone = Objective(row.gamma, 0.0, options.norm, True).point(passes.zero)
    return ClampReport(
        gamma=row.gamma,
        lam=row.lam,
        T=point.T,
        T_alone=alone.T,
        delta_norm=row.delta_norm,
        objective_before=focal_mean(z, labels, row.gamma),
        objective_temperature=alone.objective,
        objective=point.objective,
        ece_before=ece(Predictions(z, labels, "logits")),
        ece_temperature=ece(predict_rows(alone)),
        ece=row.ece,
        n=len(labels),
        k=z.shape[1],
        passes=count,
        helped=None if judged is None else judged.helped,
        diagnosis=diagnosis(options, row, best) + ("" if judged is None else f" {judged.words}"),
        options={key: list(v) if isinstance(v, tuple) else v for key, v in asdict(options).items()},
        rows=tuple(row_of(fit) for fit in fits) if len(fits) > 1 else (),
        held_out=tuple(one for fit in fits for one in fit.held_out),
        judged=judged,
    )


def row_of(fit: "ClampFit") -> ClampRow:
    p = predict_rows(fit.point)
    return ClampRow(
        gamma=fit.gamma,
        lam=fit.lam,
        T=fit.point.T,
        delta_norm=float(fit.point.delta.norm()),
        objective=fit.point.objective,
        objective_temperature=fit.nothing.objective,
        ece=ece(p),
        entropy=float(p.entropy.mean()),
        stopped=fit.why,
    )


def diagnosis(options: "NeuralClamping", row: ClampRow, fit: "ClampFit") -> str:
    gain = 1 - row.objective / row.objective_temperature if row.objective_temperature > 0 else 0.0
    other = "temperature alone" if options.what != "delta" else "the uncalibrated network"
    better = "fit by lbfgs, or for longer" if options.by == "sgd" else "fit by lbfgs"
    if options.what == "T":
        text = "Temperature alone, as asked."
    elif fit.held_out and not row.delta_norm:
        text = f"On rows left out of its fit no perturbation beats {other}. This is {other}."
    elif gain > 0 and row.delta_norm > 0:
        text = f"The perturbation lowers the objective by {percent(gain, 2)} beyond {other}."
    elif gain < 0:
        text = f"{sentence(other)} has a lower objective, by {percent(-gain, 2)}: {better}."
    else:
        text = f"The perturbation brings nothing: this is {other}."
    if not LOW * 1.001 < fit.point.T < HIGH * 0.999:
        text += f" T is at the end of its range, {LOW} to {HIGH:g}: these rows do not tell one."
    return f"{text} The fit ended: {row.stopped}." if row.stopped else text


def predict_rows(point: Point) -> Predictions:
    return Predictions(point.look.logits / point.T, point.look.labels, "logits")


def ece(p: Predictions) -> float:
    return p.top_label.bins(15).ece
