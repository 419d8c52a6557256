"""Try several calibrators on the same rows; accuracy and refinement are reported beside calibration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant import calibrators
from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.text import number_format as fmt
from calibrant.measures import make
from calibrant.measuring.compare import Comparison
from calibrant.measuring.shared_estimates import SharedEstimates
from calibrant.repairing.choose import (
    candidates_for,
    cross_fit_candidate,
    fit_candidate,
    may_take_part,
    measure_candidate,
    rule_on,
    with_identity,
)
from calibrant.repairing.cross_fit import choose_folds
from calibrant.repairing.judge import JudgedOn
from calibrant.repairing.rule import FITTING, UNCALIBRATED, Ruling, Significant, decide
from calibrant.reporting.contents_by_task import ece_spec, mce_spec, refinement
from calibrant.reporting.options import OnStep
from calibrant.reporting.parts import CalibratorTrial, Outcome

RESAMPLES = 200
OUTCOMES: dict[Significant, Outcome] = {"better": "better", "worse": "worse", "neither": "inconclusive"}
WORDS: dict[Outcome, str] = {
    "better": "Helped",
    "worse": "Made it worse",
    "inconclusive": "No significant difference in the loss",
}

Look = Callable[[str, Predictions], None]  # sees every calibrated set once: they are too large to keep


@dataclass(frozen=True, kw_only=True)
class Trials:
    """All calibrators tried, which of them to use and why, and the rows calibrated by that one."""

    rows: tuple[CalibratorTrial, ...]
    ruling: Ruling  # by the rows they are fitted on, as `choose` decides
    best: str  # the chosen one; none where it significantly worsens these rows
    after: Predictions  # by the best
    judged_on: JudgedOn
    caution: str


def calibrators_for(p: Predictions, fit_on: Predictions | None, models: int = 1) -> tuple[str, ...]:
    """The candidates of `choose`, without those that would be slow on this many rows, classes and models."""
    rows = p if fit_on is None else fit_on
    elements = models * rows.n * rows.k
    slow = {name: calibrators.make(name).slow for name in candidates(p, fit_on)}
    return tuple(name for name, most in slow.items() if most is None or elements <= most)


def candidates(p: Predictions, fit_on: Predictions | None) -> tuple[str, ...]:
    """The candidates of `choose` that suit these predictions."""
    return tuple(name for name in candidates_for(p if fit_on is None else fit_on)[1:] if may_take_part(name, p))


def try_all(
    p: Predictions,
    fit_on: Predictions | None,
    calibrators: Sequence[str],
    *,
    bins: int,
    keep_argmax: bool,
    resamples: int,
    seed: int,
    on_step: OnStep | None = None,
    look: Look | None = None,
) -> Trials:
    """Fit each calibrator on `fit_on`, or cross-fit it, and compare it with no calibration.

    The one to use is chosen on the fitting rows alone, so that the rows it is judged on have no part in it.
    """
    ece = ece_spec(bins)
    measures = ("nll", "brier", ece, "accuracy", refinement(p.task))
    before = SharedEstimates.of(p, measures, resamples, seed)
    rows, judged = [_uncalibrated_trial(p, before, bins)], [measure_candidate(UNCALIBRATED, p)]
    maps, seen = dict[str, Map](), 0.0
    if look:
        look(UNCALIBRATED, p)
    for name in with_identity(calibrators)[1:]:
        if on_step:
            on_step(name)
        try:
            m, q = apply_candidate(p, fit_on, name, seed)
        except InputError as error:
            rows.append(_failed_trial(name, error))
            continue
        if fit_on is not None and m.fingerprint is not None:
            seen = max(seen, m.fingerprint.share_seen(p))
        after_map = SharedEstimates.of(q, measures, resamples, seed)
        changes = tuple(before.compare(after_map, name) for name in measures)
        rows.append(_trial(name, m, p, q, changes, bins))
        judged.append(measure_candidate(name, q))
        maps[name] = m
        if look:
            look(name, q)
    ruling = here = decide(judged, keep_argmax=keep_argmax, resamples=resamples, seed=seed)
    if fit_on is not None:
        if on_step:
            on_step("the choice")
        names = [candidate.calibrator for candidate in judged]
        ruling = rule_on(fit_on, names, keep_argmax=keep_argmax, seed=seed, rows=FITTING)
    best = UNCALIBRATED if here.of(ruling.chosen).significant == "worse" else ruling.chosen
    after = p
    if best != UNCALIBRATED:
        after = maps[best].apply(p) if fit_on is not None else apply_candidate(p, None, best, seed)[1]
    judged_on, caution = _choose_rows(fit_on, seen)
    return Trials(
        rows=tuple(_with_outcome(t, here) for t in rows),
        ruling=ruling,
        best=best,
        after=after,
        judged_on=judged_on,
        caution=caution,
    )


def apply_candidate(p: Predictions, fit_on: Predictions | None, name: str, seed: int) -> tuple[Map, Predictions]:
    """The map fitted on `fit_on` and the rows calibrated by it; without `fit_on`, cross-fitted."""
    if fit_on is not None:
        m = fit_candidate(fit_on, name)
        return m, m.apply(p)
    return fit_candidate(p, name), cross_fit_candidate(p, name, choose_folds(p, None, seed))


def _choose_rows(fit_on: Predictions | None, seen: float) -> tuple[JudgedOn, str]:
    if fit_on is None:
        return "cross_fitted", ""
    if seen > 0:
        return "fitting_rows", (
            f"About {fmt.whole_percent(seen)} of the rows the calibrators are judged on are among those they were "
            "fitted on, so the numbers after calibration are optimistic. Fit on held-out rows."
        )
    return "held_out", ""


def _uncalibrated_trial(p: Predictions, before: SharedEstimates, bins: int) -> CalibratorTrial:
    values = {name: e.value for name, e in before.estimates.items()} | _more_values(p, bins)
    return CalibratorTrial(
        calibrator=UNCALIBRATED,
        outcome="uncalibrated",
        words="No calibration.",
        learned="",
        parameters={},
        keeps_argmax=True,
        predictions_changed=0,
        values=values,
        changes=(),
        curve=p.curve,
    )


def _more_values(p: Predictions, bins: int) -> dict[str, float]:
    values = {name: make(name)(p) for name in ("gap", mce_spec(bins), "classwise") if p.task in make(name).tasks}
    return values | {"says": p.mean(p.score)}


def _trial(
    name: str, m: Map, p: Predictions, q: Predictions, changes: tuple[Comparison, ...], bins: int
) -> CalibratorTrial:
    """The trial of one calibrator without its outcome, which the rule decides."""
    values = {c.measure: c.b for c in changes} | _more_values(q, bins)
    return CalibratorTrial(
        calibrator=name,
        outcome="inconclusive",
        words="",
        learned=describe_fit(m),
        parameters=_parameters(m),
        keeps_argmax=m.keeps_argmax,
        predictions_changed=int((q.predicted != p.predicted).sum()),
        values=values,
        changes=changes,
        curve=q.curve,
    )


def _failed_trial(name: str, error: InputError) -> CalibratorTrial:
    return CalibratorTrial(
        calibrator=name,
        outcome="failed",
        words=str(error),
        learned="",
        parameters={},
        keeps_argmax=False,
        predictions_changed=0,
        values={},
        changes=(),
    )


def _with_outcome(t: CalibratorTrial, ruling: Ruling) -> CalibratorTrial:
    """Add the outcome of a trial: by its loss, with notes on other measures that changed."""
    if t.outcome in ("uncalibrated", "failed"):
        return t
    outcome = OUTCOMES[ruling.of(t.calibrator).significant]
    sides = {name_of(c.measure): c.better for c in t.changes}
    notes = []
    for measure, name, words in (
        ("ece", "the ECE", {"a": "rose", "b": "fell"}),
        ("accuracy", "accuracy", {"a": "fell", "b": "rose"}),
        ("auroc_correct", "refinement (AUROC)", {"a": "fell", "b": "rose"}),
        ("roc_auc", "refinement (ROC AUC)", {"a": "fell", "b": "rose"}),
    ):
        if sides.get(measure, "neither") != "neither":
            notes.append(f"{name} {words[sides[measure]]}")
    sentence = "; ".join([WORDS[outcome], *([", ".join(notes)] if notes else [])])
    return replace(t, outcome=outcome, words=f"{sentence}.")


def describe_fit(m: Map) -> str:
    """Describe the fitted parameters in one line, and the reason where the fit ended badly.

    >>> from calibrant.repairing.fit import fit
    >>> describe_fit(fit(Predictions.from_logits([[2.0, 0.0]] * 4, [0, 0, 0, 1]), "temperature"))
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
