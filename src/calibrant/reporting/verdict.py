"""The state of a verdict: how it is now, whether a repair is enough, and for whom it is not; with a colour.

Nothing is written here: every sentence is made from the state, in `sentences.py`.
"""

from dataclasses import replace
from math import sqrt

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.clustered_shares import effective_rows
from calibrant.repairing.choose import fit_candidate
from calibrant.repairing.judge import JudgedOn
from calibrant.repairing.rule import UNCALIBRATED, Ruling
from calibrant.reporting.parts import (
    Assessment,
    CalibrationState,
    CalibratorTrial,
    Colour,
    Cost,
    Finding,
    RepairState,
    Segment,
    Segments,
    UnlikeRows,
)

FINE: tuple[CalibrationState, ...] = ("calibrated", "close")
OPEN: tuple[CalibrationState, ...] = ("inconclusive", "untested")
WITHIN_CHANCE: tuple[CalibrationState, ...] = (*FINE, "inconclusive")
LARGE = 0.05  # an ECE that nobody should rely on
LEAST_OFF = 0.01  # gap of a segment that is worth a line
UNLIKE = 2.576  # standard errors between two sets of rows: 1 of 100 draws from one source


def judge(
    now: Assessment,
    *,
    trials: tuple[CalibratorTrial, ...] = (),
    ruling: Ruling | None = None,
    judged_on: JudgedOn | None = None,
    after: Assessment | None = None,
    groups: Segments | None = None,
    classes: Segments | None = None,
    unlike: UnlikeRows | None = None,
    cost: Cost | None = None,
) -> Finding:
    """The state of the predictions, and of the repair where calibrators were tried."""
    repair = _repair(now, trials, ruling, after)
    repaired = repair in ("inconclusive", "better", "solved")
    calibrator = ruling.chosen if ruling and repaired else UNCALIBRATED
    of_groups, worst, harmed = _exceptions(groups, classes) if repair != "stopped" else (False, None, None)
    money = None if cost is None else cost.row(calibrator).against_trivial
    found = Finding(
        now=now,
        repair=repair,
        colour="grey",
        calibrator=calibrator,
        after=after if repaired else None,
        of_groups=of_groups,
        worst=worst,
        harmed=harmed,
        unlike=unlike if repaired else None,
        money=None if repair == "stopped" else money,
    )
    return replace(found, colour=_colour(found, judged_on, cost))


def stops(now: Assessment, trials: tuple[CalibratorTrial, ...] = (), ruling: Ruling | None = None) -> bool:
    """Whether nothing can be recommended: scores are reversed, or rows are too few and no calibrator helps them."""
    if now.level == "reversed":
        return True
    return now.state == "inconclusive" and not (ruling and _outcome(trials, ruling.chosen) == "better")


def compare_rows(p: Predictions, fit_on: Predictions | None) -> UnlikeRows | None:
    """How the rows to fit on differ from these, where their rates of outcomes do so significantly."""
    if fit_on is None:
        return None
    here, there = p.mean(p.outcome), fit_on.mean(fit_on.outcome)
    n, m = effective_rows(p), effective_rows(fit_on)
    rate = (n * here + m * there) / (n + m)
    error = sqrt(rate * (1 - rate) * (1 / n + 1 / m))
    if error == 0 or abs(z := (there - here) / error) < UNLIKE:
        return None
    return UnlikeRows(fitted_on=there, judged_on=here, z=z, T_fitted=_temperature(fit_on), T_judged=_temperature(p))


def _temperature(p: Predictions) -> float | None:
    try:
        return float(fit_candidate(p, "temperature").parameters["T"])
    except (InputError, KeyError):  # these rows have none
        return None


def _outcome(trials: tuple[CalibratorTrial, ...], calibrator: str) -> str:
    return next(t.outcome for t in trials if t.calibrator == calibrator)


def _repair(
    now: Assessment, trials: tuple[CalibratorTrial, ...], ruling: Ruling | None, after: Assessment | None
) -> RepairState:
    if stops(now, trials, ruling):
        return "stopped"
    if ruling is None:
        return "hopeless" if now.level == "none" and now.state in FINE else "not_tried"
    if ruling.outcomes != "differ":
        return "nothing_to_fit"
    if ruling.chosen == UNCALIBRATED:
        if now.state in FINE:
            return "hopeless" if now.level == "none" else "not_needed"
        return "none_helps" if any(t.outcome != "failed" for t in trials[1:]) else "not_tried"
    if _outcome(trials, ruling.chosen) == "worse":
        return "worsens"
    if after is not None and after.state in WITHIN_CHANCE:
        return "solved"
    return "better" if _outcome(trials, ruling.chosen) == "better" else "inconclusive"


def _exceptions(groups: Segments | None, classes: Segments | None) -> tuple[bool, Segment | None, Segment | None]:
    """The segment that is off most, and the one a repair harms most: of the user's groups first, then of classes."""
    for of_groups, part in ((True, groups), (False, classes)):
        off = [] if part is None else [s for s in part.rows if s.off and abs(s.left) >= LEAST_OFF]
        if off:
            worst = max(off, key=lambda s: abs(s.left) - (s.high - s.low) / 2)
            harmed = max((s for s in off if s.worse_after), key=lambda s: abs(s.left) - abs(s.gap), default=None)
            return of_groups, worst, harmed
    return False, None, None


def _colour(f: Finding, judged_on: JudgedOn | None, cost: Cost | None) -> Colour:
    now, level = f.now, f.now.level
    if level == "reversed":
        return "red"
    if f.repair == "stopped":
        return "grey"
    if f.money is not None and cost is not None:
        if f.money == "loses":
            return "red"
        dearer = cost.row(f.calibrator).change_low > 0
        return "amber" if dearer or f.money == "inconclusive" or f.harmed else "green"
    if level == "none":
        return "red"
    if f.repair in ("solved", "not_needed") or (f.repair == "not_tried" and now.state in FINE):
        left = f.after or now
        doubt = f.worst or f.unlike or level in ("barely", "unclear") or left.state == "inconclusive"
        return "amber" if doubt or judged_on == "fitting_rows" else "green"
    if f.repair in ("better", "inconclusive"):
        return "amber"
    if now.state in OPEN:
        return "grey"
    return "red" if now.noise.observed >= LARGE and now.state in ("over", "under", "mixed") else "amber"
