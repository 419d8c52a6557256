"""How a fit of Neural Clamping went, in numbers and in a sentence."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from calibrant.core.predictions import Predictions
from calibrant.core.torch.clamp_report import ClampReport, ClampRow
from calibrant.core.wording import percent, sentence
from calibrant.rescorers._clamp_fit import Objective, Point
from calibrant.rescorers._clamp_passes import Passes
from calibrant.rescorers._clamp_search import Fitted
from calibrant.rescorers._focal_temperature import HIGH, LOW, focal_mean

if TYPE_CHECKING:
    from calibrant.rescorers.clamping import NeuralClamping


def chosen(fits: Sequence[Fitted]) -> Fitted:
    """The fit with the smallest ECE on the calibration rows."""
    return min(fits, key=lambda fit: ece(predicted(fit.point)))


def report(options: "NeuralClamping", passes: Passes, fits: Sequence[Fitted], best: Fitted) -> ClampReport:
    z, labels = passes.zero.logits, passes.zero.labels
    row, found = row_of(best), best.point
    alone = Objective(row.gamma, 0.0, options.norm, True).point(passes.zero)
    return ClampReport(
        gamma=row.gamma,
        lam=row.lam,
        T=found.T,
        T_alone=alone.T,
        delta_norm=row.delta_norm,
        objective_before=focal_mean(z, labels, row.gamma),
        objective_temperature=alone.objective,
        objective=found.objective,
        ece_before=ece(Predictions(z, labels, "logits")),
        ece_temperature=ece(predicted(alone)),
        ece=row.ece,
        n=len(labels),
        k=z.shape[1],
        passes=passes.count,
        helped=row.delta_norm > 0 and found.objective < row.objective_temperature,
        diagnosis=diagnosis(options, row, best),
        options={key: list(v) if isinstance(v, tuple) else v for key, v in asdict(options).items()},
        rows=tuple(row_of(fit) for fit in fits) if len(fits) > 1 else (),
        held_out=tuple(one for fit in fits for one in fit.held_out),
    )


def row_of(fit: Fitted) -> ClampRow:
    p = predicted(fit.point)
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


def diagnosis(options: "NeuralClamping", row: ClampRow, fit: Fitted) -> str:
    gain = 1 - row.objective / row.objective_temperature if row.objective_temperature > 0 else 0.0
    other = "temperature alone" if options.what != "delta" else "the uncalibrated network"
    better = "fit by lbfgs, or for longer" if options.by == "sgd" else "fit by lbfgs"
    if options.what == "T":
        said = "Temperature alone, as asked."
    elif fit.held_out and not row.delta_norm:
        said = f"On rows left out of its fit no perturbation beats {other}. This is {other}."
    elif gain > 0 and row.delta_norm > 0:
        said = f"The perturbation lowers the objective by {percent(gain, 2)} beyond {other}."
    elif gain < 0:
        said = f"{sentence(other)} has a lower objective, by {percent(-gain, 2)}: {better}."
    else:
        said = f"The perturbation brings nothing: this is {other}."
    if not LOW * 1.001 < fit.point.T < HIGH * 0.999:
        said += f" T is at the end of its range, {LOW} to {HIGH:g}: these rows do not tell one."
    return f"{said} The fit ended: {row.stopped}." if row.stopped else said


def predicted(point: Point) -> Predictions:
    return Predictions(point.look.logits / point.T, point.look.labels, "logits")


def ece(p: Predictions) -> float:
    return p.top_label.bins(15).ece
