"""What helped and what did not: several calibrators on the same rows, accuracy and refinement beside calibration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.calibrators import CATALOGUE, Map, fit
from calibrant.calibrators._auto import FOLDS, cross_fit
from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.measures._compare import Comparison
from calibrant.measures.nll import NLL
from calibrant.report.draws import Draws, compared
from calibrant.report.values import Outcome, Tried

ALWAYS = ("temperature", "isotonic", "beta", "histogram")
SMALL = ("temperature", "ets", "svs", "isotonic", "beta", "histogram")  # where all of them take a few seconds
SMALL_ELEMENTS = 1 << 20  # rows x classes x fits
RESAMPLES = 200

Step = Callable[[str], None]
Look = Callable[[str, Predictions], None]  # sees every calibrated set once: they are too large to keep


@dataclass(frozen=True)
class Trial:
    """All calibrators tried, the one to use, and what it makes of the rows."""

    rows: tuple[Tried, ...]
    best: str
    after: Predictions  # by the best one
    judged_on: str
    caution: str
    losses: dict[str, Array]  # NLL of every row


def calibrators_for(p: Predictions, fit_on: Predictions | None, models: int = 1) -> tuple[str, ...]:
    """The default list: what this many rows, classes and models allow in a few seconds."""
    elements = models * (p.n * p.k * FOLDS if fit_on is None else fit_on.n * fit_on.k)
    return SMALL if elements <= SMALL_ELEMENTS else ALWAYS


def try_all(
    p: Predictions,
    fit_on: Predictions | None,
    calibrators: Sequence[str],
    *,
    ece: str,
    before: Draws,
    resamples: int,
    seed: int,
    on_step: Step | None = None,
    look: Look | None = None,
) -> Trial:
    """Fit each on other rows, or cross-fitted where there are none, and compare it with doing nothing."""
    names = list(dict.fromkeys(("identity", *calibrators)))
    measures = ("nll", "brier", ece, "accuracy", "auroc")
    before = before.first(measures, resamples)
    rows, losses, maps, seen = [_as_it_is(p, before, ece)], {"identity": NLL().rows(p)}, dict[str, Map](), 0.0
    if look:
        look("identity", p)
    for name in names[1:]:
        if on_step:
            on_step(name)
        try:
            m, q = _calibrated(p, fit_on, name, seed)
        except InputError as error:
            rows.append(_failed(name, error))
            continue
        if fit_on is not None and m.fingerprint is not None:
            seen = max(seen, m.fingerprint.seen(p))
        changes = compared(before, Draws.of(q, dict.fromkeys(measures, resamples), seed), p)
        rows.append(_tried(name, m, p, q, changes, ece))
        maps[name] = m
        losses[name] = NLL().rows(q)
        if look:
            look(name, q)
    best = _best(rows, losses)
    after = (
        p if best == "identity" else maps[best].apply(p) if fit_on is not None else _calibrated(p, None, best, seed)[1]
    )
    judged_on, caution = _judged_on(p, fit_on, seen)
    return Trial(tuple(rows), best, after, judged_on, caution, losses)


def _calibrated(p: Predictions, fit_on: Predictions | None, name: str, seed: int) -> tuple[Map, Predictions]:
    if fit_on is not None:
        m = fit(fit_on, name)
        return m, m.apply(p)
    return fit(p, name), cross_fit(p, name, folds=min(FOLDS, p.n), seed=seed)[0]


def _judged_on(p: Predictions, fit_on: Predictions | None, seen: float) -> tuple[str, str]:
    if fit_on is None:
        return "cross-fitted rows", ""
    if seen > 0:
        return "the fitting rows", (
            f"About {seen:.0%} of the rows the calibrators were fitted on are among the rows they are judged on, so "
            "the numbers after calibration flatter them. Fit on other rows."
        )
    return "other rows", ""


def _as_it_is(p: Predictions, before: Draws, ece: str) -> Tried:
    values = before.values | _more_values(p, ece)
    return Tried("identity", "as it is", "The predictions as they are.", "", {}, True, 0, values, (), p.top_label)


def _more_values(p: Predictions, ece: str) -> dict[str, float]:
    mce = ece.replace("ece", "mce")
    found = {name: make(name)(p) for name in ("gap", mce, "classwise")}
    return found | {"says": float(p.confidence.mean())}


def _tried(name: str, m: Map, p: Predictions, q: Predictions, changes: tuple[Comparison, ...], ece: str) -> Tried:
    values = {c.measure: c.b for c in changes} | _more_values(q, ece)
    changed = int((q.predicted != p.predicted).sum())
    outcome, words = _outcome({c.measure.partition(":")[0]: c for c in changes})
    return Tried(
        name, outcome, words, learned(m), _parameters(m), m.keeps_argmax, changed, values, changes, q.top_label
    )


def _failed(name: str, error: InputError) -> Tried:
    return Tried(name, "failed", str(error), "", {}, False, 0, {}, ())


def _outcome(changes: dict[str, Comparison]) -> tuple[Outcome, str]:
    """The loss decides; what else moved, for better or worse, is said beside it."""
    loss, error = changes["nll"], changes["ece"]
    sides = {"b": "helped", "a": "made it worse", "neither": "no difference shown"}
    outcome: Outcome = sides[loss.better if loss.better != "neither" else error.better]  # type: ignore[assignment]
    notes = []
    if loss.better == "neither" and error.better != "neither":
        notes.append("shown for the ECE only, not for the loss")
    if loss.better == "b" and error.better == "a":
        notes.append("but the ECE rose")
    if loss.better == "a" and error.better == "b":
        notes.append("although the ECE fell")
    for measure, what in (("accuracy", "accuracy"), ("auroc", "refinement (AUROC)")):
        if changes[measure].better != "neither":
            notes.append(f"{what} {'fell' if changes[measure].better == 'a' else 'rose'}")
    words = f"{outcome[0].upper()}{outcome[1:]}"
    return outcome, f"{words}: {'; '.join(notes)}." if notes else f"{words}."


def learned(m: Map) -> str:
    """What was fitted, in one line, and why where the fit ended badly.

    >>> learned(fit(Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1]), "temperature"))
    'T = 1.82 [0.23, 14.28]'
    """
    p = m.parameters
    if "T_low" in p and m.fit.converged:
        words = f"T = {p['T']:.2f} [{p['T_low']:.2f}, {p['T_high']:.2f}]"
    else:
        numbers = [f"{k} = {v:.3g}" for k, v in p.items() if isinstance(v, float) and np.isfinite(v)]
        words = ", ".join(n for n in numbers if not n.startswith("objective"))
    diagnosis = "" if m.fit.converged else m.fit.diagnosis
    return "; ".join(part for part in (words, diagnosis) if part)


def _parameters(m: Map) -> dict[str, float]:
    return {name: float(v) for name, v in m.parameters.items() if isinstance(v, float) and np.isfinite(v)}


def _best(rows: Sequence[Tried], losses: dict[str, Array]) -> str:
    """The simplest whose loss is within one standard error of the lowest, among those that change no decision.

    A map that changes decisions changes the product, not only its honesty: that is for people to choose.
    """
    kept = [t.calibrator for t in rows if t.calibrator in losses and t.keeps_argmax]
    lowest = min(kept, key=lambda name: losses[name].mean())
    ranked = sorted(kept, key=_complexity)  # of equally simple ones the first in the list
    return next(name for name in ranked if _within_one_error(losses[name] - losses[lowest]))


def bolder(trial: Trial) -> str | None:
    """A calibrator that may change decisions and has a lower loss than the best one, beyond noise."""
    free = [t for t in trial.rows if t.calibrator in trial.losses and not t.keeps_argmax]
    free = [t for t in free if not any(c.measure == "accuracy" and c.better == "a" for c in t.changes)]
    if not free:
        return None
    name = min(free, key=lambda t: trial.losses[t.calibrator].mean()).calibrator
    gain = trial.losses[trial.best] - trial.losses[name]
    return name if gain.mean() > 1.96 * gain.std() / np.sqrt(len(gain)) else None


def _complexity(name: str) -> int:
    return max(CATALOGUE.make(one.strip()).complexity for one in name.split("+"))


def _within_one_error(difference: Array) -> bool:
    return bool(difference.mean() <= difference.std() / np.sqrt(len(difference)))


def settled_by(trial: Trial) -> tuple[str, int] | None:
    """The nearest rival of the best calibrator and the rows, in all, that would tell them apart; None if told."""
    rivals = [name for name in trial.losses if name != trial.best]
    if not rivals:
        return None
    rival = min(rivals, key=lambda name: trial.losses[name].mean())
    gap = trial.losses[rival] - trial.losses[trial.best]
    mean, half = float(gap.mean()), 1.96 * float(gap.std()) / np.sqrt(len(gap))
    if abs(mean) > half or mean == 0:
        return None
    return rival, int(np.ceil(len(gap) * (half / mean) ** 2))
