"""The verdict: one line and one paragraph, written for readers who never heard of calibration.

Every sentence about repairs that a page, a terminal or a command prints is written here; what is said of the
predictions in `headline.py`, and why a calibrator was chosen by the rule itself (`repairing/rule.py`).
"""

from calibrant import calibrators
from calibrant.core.catalogue import name_of
from calibrant.core.text import number_format as fmt
from calibrant.measuring.compare import Comparison
from calibrant.measuring.measure import REVERSED
from calibrant.repairing.judge import JudgedOn
from calibrant.repairing.rule import UNCALIBRATED, Ruling
from calibrant.reporting.calibration_state import Assessment
from calibrant.reporting.headline import error_words, headline
from calibrant.reporting.parts import CalibratorTrial, Model, Outcome, Verdict

HELPED: Outcome = "better"
WORSE: Outcome = "worse"


def of_predictions(assessment: Assessment) -> Verdict:
    """The verdict without a word about repairs, as `calibrant measure` prints it."""
    words = (REVERSED if assessment.reversed_auc is not None else "", error_words(assessment))
    return Verdict(assessment.state, headline(assessment), " ".join(part for part in words if part))


def write(assessment: Assessment, trials: tuple[CalibratorTrial, ...], ruling: Ruling, judged_on: JudgedOn) -> Verdict:
    """The verdict with the results of the calibrators tried, and which to use."""
    parts = [
        error_words(assessment),
        _repair(assessment, trials, ruling, judged_on),
        _other_option(trials, ruling),
        _harm(trials, ruling),
    ]
    text = " ".join(part for part in parts if part)
    first = headline(assessment, _find(trials, ruling.chosen).outcome)
    return Verdict(assessment.state, first, text, _action(assessment, trials, ruling, _where_chosen(judged_on)))


def _where_chosen(judged_on: JudgedOn) -> str:
    return "" if judged_on == "cross_fitted" else " on the fitting set"


def _action(assessment: Assessment, trials: tuple[CalibratorTrial, ...], ruling: Ruling, where: str) -> str:
    """The recommended action, in one line."""
    if assessment.reversed_auc is not None:
        return REVERSED
    if ruling.outcomes != "differ":
        return ruling.choice_words
    if ruling.chosen == UNCALIBRATED:
        if assessment.state in ("calibrated", "close"):
            return "Use it uncalibrated: no calibration needed."
        if not [t for t in trials[1:] if t.outcome != "failed"]:
            return "No calibrator was tried."
        few = assessment.state == "inconclusive" or assessment.state in ("perhaps_over", "perhaps_under")
        do = "Collect more rows first" if few else "Use it uncalibrated"
        return f"{do}: no calibrator tried significantly helps{where}."
    t = _find(trials, ruling.chosen)
    if t.outcome == WORSE:
        return f"Use it uncalibrated: {t.calibrator}, chosen on the fitting set, makes these rows worse."
    changes = _changes(t)
    name = f"temperature T = {t.parameters['T']:.3g}" if t.calibrator == "temperature" else t.calibrator
    ece, nll = changes["ece"], changes["nll"]
    effect = f"ECE {fmt.percent_from_to(ece.a, ece.b)}"
    if ece.better != "b":
        effect = f"loss (NLL) {fmt.from_to(nll.a, nll.b)}"
    if t.outcome != HELPED:
        doubt = f"chosen on the fitting set, inconclusive on these rows ({effect})"
        effect = doubt if where else f"{effect} (inconclusive)"
    if assessment.task == "confidence":  # the predictions themselves are not known
        return f"Use {name}: {effect}."
    changed = t.predictions_changed
    kept = "no prediction changes" if not changed else fmt.count(changed, "prediction changes", "predictions change")
    return f"Use {name}: {effect}, {kept}."


def choice(m: Model) -> str:
    """Which calibrator was chosen and why, or why it is not used where these rows speak against it."""
    if m.ruling is None:
        return ""
    if m.best != m.ruling.chosen:
        return f"{fmt.sentence(m.ruling.chosen)} was chosen on the fitting set, but makes these rows worse."
    return f"{m.ruling.choice_words} {m.ruling.option_words}".rstrip()


def badge(m: Model) -> str:
    """A short label beside the calibrator to use, or beside no calibration."""
    if m.best != UNCALIBRATED:
        return "use this"
    if m.ruling is not None and m.ruling.outcomes != "differ":
        return "nothing to fit"
    if m.verdict.state in ("calibrated", "close"):
        return "no calibration needed"
    if m.ruling is not None and m.ruling.chosen != UNCALIBRATED:
        return "use it uncalibrated"
    return "no calibrator significantly helps" if len(m.trials) > 1 else "no calibrator tried"


def describe_judging(judged_on: JudgedOn, not_tried: tuple[str, ...] = ()) -> str:
    """A sentence on how the calibrators were fitted and tested."""
    words = {
        "held_out": "Each calibrator was fitted on separate rows and judged on these, which are held out.",
        "cross_fitted": "No rows to fit on were given, so each row is calibrated by a map fitted on the other four "
        "fifths of the rows (cross-fitting); the parameters are of a fit on all rows.",
        "fitting_rows": "The calibrators were fitted on rows they are judged on: these numbers are optimistic.",
    }[judged_on]
    if not_tried:
        words += f" Not tried, because it takes long on so many rows and classes: {fmt.list_words(not_tried)}."
    return words


def _repair(assessment: Assessment, trials: tuple[CalibratorTrial, ...], ruling: Ruling, judged_on: JudgedOn) -> str:
    state = assessment.state
    others = [t.calibrator for t in trials[1:] if t.outcome != "failed"]
    if not others or ruling.outcomes != "differ":
        return ""
    if ruling.chosen == UNCALIBRATED:
        which = "keeps every prediction and " if ruling.keep_argmax else ""
        listed, where = fmt.list_words(others, most=8), _where_chosen(judged_on)
        none = f"none of the calibrators tried ({listed}) {which}significantly lowers the loss{where}"
        words = f"No calibration needed: {none}." if state in ("calibrated", "close") else f"{fmt.sentence(none)}."
        here = [_in_text(t.calibrator) for t in trials if t.outcome == HELPED]
        return f"{words} On these rows {fmt.list_words(here, most=8)} would have." if here else words
    t = _find(trials, ruling.chosen)
    changes = _changes(t)
    fitted = {
        "held_out": "on held-out rows,",
        "cross_fitted": "cross-fitted,",
        "fitting_rows": "fitted on these very rows (which is optimistic),",
    }
    name = f"{_name(t)}, {fitted[judged_on]}"
    numbers = f"(NLL {fmt.from_to(changes['nll'].a, changes['nll'].b)})"
    if t.outcome == WORSE:
        return f"{name} was the choice by the fitting set, but raises the loss of these rows {numbers}."
    loss = f"lowers the loss {numbers}" if t.outcome == HELPED else f"has no significant effect on the loss {numbers}"
    if state in ("over", "under", "mixed", "close"):
        loss += f" and {_how_much(changes['ece'])}"
    refinement = _refinement(changes["roc_auc" if "roc_auc" in changes else "auroc_correct"])
    if assessment.task == "confidence":
        return f"{name} {loss}; {refinement}."
    return f"{name} {loss}. {_predictions(t, changes['accuracy'])}; {refinement}."


def _other_option(trials: tuple[CalibratorTrial, ...], ruling: Ruling) -> str:
    """A sentence on what would be chosen with the other setting of keep_argmax."""
    if ruling.otherwise == ruling.chosen:
        return ""
    if ruling.otherwise == UNCALIBRATED:
        return "Among calibrators that keep every prediction, none significantly lowers the loss."
    t = _find(trials, ruling.otherwise)
    if t.outcome == WORSE:
        return ""
    changes = _changes(t)
    condition = "If predictions may change" if ruling.keep_argmax else "To keep every prediction"
    name, loss = _name(t), fmt.from_to(changes["nll"].a, changes["nll"].b)
    words = f"{condition}, use {name[0].lower()}{name[1:]} (NLL {loss})."
    return f"{words} {_predictions(t, changes['accuracy'])}." if ruling.keep_argmax else words


def _find(trials: tuple[CalibratorTrial, ...], calibrator: str) -> CalibratorTrial:
    return next(t for t in trials if t.calibrator == calibrator)


def _changes(t: CalibratorTrial) -> dict[str, Comparison]:
    return {name_of(c.measure): c for c in t.changes}


def _in_text(calibrator: str) -> str:
    """The name of a calibrator in a sentence; chains and users' files keep their own names."""
    return calibrator if "+" in calibrator or ".py" in calibrator else calibrators.make(calibrator).name_in_text


def _name(t: CalibratorTrial) -> str:
    if t.calibrator == "temperature" and "T" in t.parameters:
        end = "" if "T_high" in t.parameters else " (the end of its range)"
        return f"A temperature of {t.parameters['T']:.3g}{end}"
    return fmt.sentence(_in_text(t.calibrator))


def _how_much(ece: Comparison) -> str:
    numbers = f"(ECE {fmt.percent_from_to(ece.a, ece.b)})"
    if ece.better == "a":
        return f"raises the calibration error {numbers}"
    if ece.better == "neither":
        return f"has no significant effect on the calibration error {numbers}"
    share = 1 - ece.b / ece.a
    amount = "nearly all" if share >= 0.8 else "most" if share >= 0.5 else "part" if share >= 0.2 else "a little"
    return f"removes {amount} of the calibration error {numbers}"


def _predictions(t: CalibratorTrial, accuracy: Comparison) -> str:
    if t.keeps_argmax or not t.predictions_changed:
        return "It changes no prediction"
    rates = f"accuracy ({fmt.percent_from_to(accuracy.a, accuracy.b)})"
    word = {"a": "which lowers", "b": "which raises"}.get(accuracy.better, "with no significant effect on")
    return f"It changes {fmt.count(t.predictions_changed, 'prediction')}, {word} {rates}"


def _refinement(auroc: Comparison) -> str:
    name = "refinement (ROC AUC)" if auroc.measure == "roc_auc" else "refinement (AUROC)"
    if auroc.a != auroc.a or auroc.b != auroc.b:
        return f"{name} is undefined here"
    if auroc.better == "neither":
        change = fmt.from_to(auroc.a, auroc.b)
        return f"{name} is unchanged" if auroc.a == auroc.b else f"{name} does not change significantly, {change}"
    slightly = "slightly " if abs(auroc.difference) < 0.005 else ""
    word = f"gets {slightly}worse" if auroc.better == "a" else f"improves{' slightly' if slightly else ''}"
    return f"{name} {word}, {fmt.from_to(auroc.a, auroc.b)}"


def _harm(trials: tuple[CalibratorTrial, ...], ruling: Ruling) -> str:
    """A sentence on the calibrators that raise the loss, other than the chosen one."""
    worse = [t.calibrator for t in trials if t.outcome == WORSE and t.calibrator != ruling.chosen]
    return f"The loss is raised by {fmt.list_words([_in_text(name) for name in worse], most=8)}." if worse else ""
