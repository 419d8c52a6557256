"""Summary of the fits of Neural Clamping: the best of them, compared with temperature scaling."""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from calibrant.core.curves.binning import Binning
from calibrant.core.predictions import Predictions
from calibrant.core.text.number_format import percent, sentence
from calibrant.core.torch.loader import Loader
from calibrant.rescorers._clamp_fit import Objective, Point
from calibrant.rescorers._clamp_options import ClampOptions
from calibrant.rescorers._clamp_passes import Passes
from calibrant.rescorers._clamp_report import ClampComparison, ClampReport, ClampRow
from calibrant.rescorers._clamp_search import ClampFit
from calibrant.rescorers._focal_temperature import HIGH, LOW, best_temperature, focal_mean, row_losses

NORMAL_95 = 1.959964  # standard errors to either side of a mean of many rows


def choose_fit(fits: Sequence[ClampFit]) -> ClampFit:
    """The fit with the smallest ECE on the calibration rows."""
    return min(fits, key=lambda fit: ece(predict_rows(fit.point)))


def summarise(
    options: ClampOptions,
    passes: Passes,
    fits: Sequence[ClampFit],
    best: ClampFit,
    held_out: Loader | None = None,
) -> ClampReport:
    """The report of the best of these fits."""
    z, labels, count = passes.zero.logits, passes.zero.labels, passes.count
    judged = None if held_out is None else compare_held_out(passes, best.point, held_out)
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
        ece_before=ece(Predictions._from_valid(z, labels, "logits")),
        ece_temperature=ece(predict_rows(alone)),
        ece=row.ece,
        n=len(labels),
        k=z.shape[1],
        passes=count,
        helped=None if judged is None else judged.helped,
        diagnosis=diagnosis(options, row, best) + ("" if judged is None else f" {judged.words}"),
        options={key: list(v) if isinstance(v, tuple) else v for key, v in asdict(options).items()},
        rows=tuple(row_of(fit) for fit in fits) if len(fits) > 1 else (),
        held_out=tuple(losses for fit in fits for losses in fit.held_out),
        judged=judged,
    )


def compare_held_out(passes: Passes, point: Point, held_out: Loader) -> ClampComparison:
    """The clamp against plain temperature scaling (cross-entropy, no perturbation): two passes over held-out rows."""
    T = best_temperature(passes.zero.logits, passes.zero.labels, 0.0)
    clamped, plain = passes.look(point.delta, held_out), passes.look(passes.zero.delta, held_out)
    ours, theirs = (row_losses(look.logits / by, look.labels) for look, by in ((clamped, point.T), (plain, T)))
    change = ours - theirs
    mean, error = float(change.mean()), float(change.std(ddof=1)) / len(change) ** 0.5 if len(change) > 1 else np.inf
    reach = NORMAL_95 * error
    return ClampComparison(len(change), float(ours.mean()), float(theirs.mean()), mean - reach, mean + reach)


def row_of(fit: ClampFit) -> ClampRow:
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


def diagnosis(options: ClampOptions, row: ClampRow, fit: ClampFit) -> str:
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
    return Predictions._from_valid(point.look.logits / point.T, point.look.labels, "logits")


def ece(p: Predictions) -> float:
    return p.top_label.bins(Binning(15)).ece
